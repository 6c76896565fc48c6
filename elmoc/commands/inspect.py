"""`elmoc inspect`: the command that says what a feature file holds, and whether it is
whole.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from elmoc.errors import one_line, say

if TYPE_CHECKING:
    from elmoc.features.reader import FeatureFile


@dataclass(frozen=True, kw_only=True)
class Options:
    """The file, and how much of it is read."""

    file: Annotated[str, Meta(description="feature file (.h5)")]
    quick: Annotated[
        bool, Meta(description="read sizes alone, neither words nor numbers")
    ] = False


def run(options: Options) -> None:
    """Print what a feature file holds.

    Raises:
        InputError: the file is damaged.
    """
    from elmoc.features.reader import FeatureFile
    from elmoc.process import progress_bar

    with FeatureFile(options.file) as features:
        said = _description(features)
        if not options.quick:
            longest = max(features.lengths, default=0)
            said["words"] = f"{features.tokens:,}, at most {longest:,} a sentence"
        # What the file was made from, unless it has been said above.
        for name, value in features.attributes.items():
            said.setdefault(name.replace("_", " "), str(value))
        say(options.file)
        for name, value in said.items():
            say(f"  {one_line(name):12} {value}")
        if options.quick:
            say("  not checked  --quick: the numbers have not been read")
            return
        with progress_bar(
            total=len(features),
            unit=" sentences",
            unit_scale=True,
            desc="  check",
            delay=2,
            leave=False,
        ) as progress:
            features.check(progress.update)
        say("  sound        every sentence has been read")


def _description(features: "FeatureFile") -> dict[str, str]:
    """What is known of a file without reading its sentences, by what it is called."""
    from elmoc.errors import human_bytes

    shape = "[n, 2P]" if features.single else f"[{features.layers}, n, 2P]"
    names = ", ".join(features.layer_names)
    found = "also" if features.has_map else "not"
    layout = features.layout
    if features.compression:
        layout += f", packed with {features.compression}"
    said = {
        "layout": layout,
        "model": str(features.attributes.get("model", "not said")),
        "word vectors": str(features.attributes.get("word_vectors", "not said")),
        "layers": f"{names}: {shape}, 2P = {features.width}",
        "numbers": features.dtype.name,
        "sentences": f"{len(features):,}, {found} found by their words",
        "size": human_bytes(features.path.stat().st_size),
    }
    if features.documents:
        said["documents"] = f"{len(features.documents):,}"
    return said
