"""`elmoc convert`: the command that writes a feature file again in another layout."""

import sys
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from elmoc.errors import say
from elmoc.features.options import LayoutName, NumberType


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is converted, and to what."""

    source: Annotated[
        str, Meta(description="the feature file to read (.h5), in any layout")
    ]
    output: Annotated[str, Meta(description="the feature file to write (.h5)")]
    layout: Annotated[
        LayoutName,
        Meta(description="layout of the new file", extra={"option": "--format"}),
    ]
    dtype: Annotated[
        NumberType | None,
        Meta(description="type of its numbers, by default that of the source"),
    ] = None
    compress: Annotated[bool, Meta(description="pack the numbers with gzip")] = False
    layers: Annotated[
        str | None,
        Meta(
            description="only these layers, in this order, as inspect names them",
            extra={"metavar": "I,J"},
        ),
    ] = None


def run(options: Options) -> None:
    """Convert a feature file."""
    from elmoc.features.convert import convert_features

    have_words = convert_features(
        options.source,
        options.output,
        layout=options.layout,
        dtype=options.dtype,
        compress=options.compress,
        layers=options.layers,
        command_line=" ".join(["elmoc", *sys.argv[1:]]),
    )
    if not have_words:
        say(
            f"sentences of {options.output} cannot be found by their words: "
            f"{options.source} lacks these"
        )
