"""`elmoc export-elmo`: the command that writes a model as bilm-tf's and AllenNLP's
files.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from elmoc.errors import say


@dataclass(frozen=True, kw_only=True)
class Options:
    """The model and its files."""

    model: Annotated[str, Meta(description="model directory, or run directory")]
    options: Annotated[str, Meta(description="the options to write (.json)")]
    weights: Annotated[str, Meta(description="the weights to write (.hdf5)")]


def run(options: Options) -> None:
    """Export a model."""
    from elmoc.interop.original_elmo import export_original_elmo

    export_original_elmo(options.model, options.options, options.weights)
    say(
        f"{options.options}, {options.weights}: the model as bilm-tf and AllenNLP read "
        "it"
    )
