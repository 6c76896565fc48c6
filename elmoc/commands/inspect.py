"""`elmoc inspect`: the command line that says what a feature file holds, and whether it
is whole.
"""

import argparse

from elmoc.errors import one_line, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc inspect`."""
    parser.add_argument("file", help="feature file (.h5)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="read sizes alone, neither words nor numbers",
    )


def run(arguments: argparse.Namespace) -> None:
    """Inspect the file that the parsed command line names; damage is an `InputError`."""
    from elmoc.errors import human_bytes
    from elmoc.features.reader import FeatureFile
    from elmoc.process import progress_bar

    with FeatureFile(arguments.file) as features:
        shape = "[n, 2P]" if features.single else f"[{features.layers}, n, 2P]"
        said = {
            "layout": features.layout
            + (f", packed with {features.compression}" if features.compression else ""),
            "model": str(features.attributes.get("model", "not said")),
            "word vectors": str(features.attributes.get("word_vectors", "not said")),
            "layers": f"{', '.join(features.layer_names)}: {shape}, 2P = {features.width}",
            "numbers": features.dtype.name,
            "sentences": f"{len(features):,}, {'also' if features.has_map else 'not'} found by their words",
            "size": human_bytes(features.path.stat().st_size),
        }
        if features.documents:
            said["documents"] = f"{len(features.documents):,}"
        if not arguments.quick:
            said["words"] = (
                f"{features.tokens:,}, at most {max(features.lengths, default=0):,} a sentence"
            )
        for name, each in features.attributes.items():
            said.setdefault(name.replace("_", " "), str(each))
        say(arguments.file)
        for what, each in said.items():
            say(f"  {one_line(what):12} {each}")
        if arguments.quick:
            say("  not checked  --quick: the numbers have not been read")
            return
        bar = progress_bar(
            total=len(features),
            unit=" sentences",
            unit_scale=True,
            desc="  check",
            delay=2,
            leave=False,
        )
        with bar as progress:
            features.check(progress.update)
        say("  sound        every sentence has been read")
