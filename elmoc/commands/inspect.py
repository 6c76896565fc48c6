"""`elmoc inspect`: the command line that says what a feature file holds, and whether it is whole."""

import argparse
from collections.abc import Iterator
from typing import Any

from elmoc.errors import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc inspect`."""
    parser.add_argument("file", help="feature file (.h5)")
    parser.add_argument("--quick", action="store_true", help="do not read all of it: neither words nor numbers")


def run(arguments: argparse.Namespace) -> None:
    """Inspect the file that the parsed command line names; damage is an `InputError`."""
    from elmoc.features.reader import FeatureFile
    from elmoc.process import progress_bar

    with FeatureFile(arguments.file) as features:
        print(arguments.file)
        for what, said in describe(features, count_words=not arguments.quick):
            print(f"  {one_line(what):12} {one_line(said)}", flush=True)
        if arguments.quick:
            print("  not checked  --quick: the numbers have not been read")
            return
        with progress_bar(
            total=len(features), unit=" sentences", unit_scale=True, desc="  check", delay=2, leave=False
        ) as progress:
            features.check(progress.update)
        print("  sound        every sentence has been read")


def describe(features: Any, *, count_words: bool) -> Iterator[tuple[str, str]]:
    """What a `FeatureFile` is and says, in pairs; with `count_words`, every sentence is looked at (but not read)."""
    from elmoc.files.writing import human_bytes

    said = features.attributes
    yield "layout", features.layout + (", packed with " + features.compression if features.compression else "")
    for name in ("model", "word_vectors"):
        yield name.replace("_", " "), str(said.get(name, "not said"))
    shape = "[n, 2P]" if features.single else f"[{features.layers}, n, 2P]"
    yield "layers", f"{', '.join(features.layer_names)}: {shape}, 2P = {features.width}"
    yield "numbers", features.dtype.name
    yield "sentences", f"{len(features):,}, {'also' if features.has_map else 'not'} found by their words"
    if count_words:
        longest = f", at most {features.lengths.max():,} a sentence" if len(features) else ""
        yield "words", f"{features.tokens:,}{longest}"
    if features.documents:
        yield "documents", f"{len(features.documents):,}"
    yield "size", human_bytes(features.path.stat().st_size)
    for name in sorted(said.keys() - {"model", "word_vectors", "layers"}):
        yield name.replace("_", " "), str(said[name])
