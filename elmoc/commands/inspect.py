"""`elmoc inspect`: the command that says what a feature file holds, and whether it is
whole.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from elmoc.errors import human_bytes, one_line, say


@dataclass(frozen=True, kw_only=True)
class Options:
    """The file."""

    file: Annotated[str, Meta(description="feature file (.h5)")]


def run(options: Options) -> None:
    """Print what a feature file holds, and read all of it.

    Raises:
        InputError: the file is damaged.
    """
    from elmoc.features.reader import FeatureFile

    with FeatureFile(options.file) as features:
        names = ", ".join(features.layer_names)
        shape = "[n, 2P]" if features.single else f"[{features.layers}, n, 2P]"
        found = "also" if features.has_map else "not"
        longest = max(features.lengths, default=0)
        said = {
            "layout": features.layout,
            "model": "not said",
            "word vectors": "not said",
            "layers": f"{names}: {shape}, 2P = {features.width}",
            "numbers": features.dtype.name,
            "sentences": f"{len(features):,}, {found} found by their words",
            "size": human_bytes(features.path.stat().st_size),
            "words": f"{features.lengths.sum():,}, at most {longest:,} a sentence",
        }
        # What the file was made from.
        said |= {
            name.replace("_", " "): str(value)
            for name, value in features.attributes.items()
            if name != "layers"
        }
        say(options.file)
        for name, text in said.items():
            say(f"  {one_line(name):12} {text}")
        features.check()
    say("  sound        every sentence has been read")
