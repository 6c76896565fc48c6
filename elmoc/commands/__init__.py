"""Subcommands of `elmoc`: each module has the frozen dataclass `Options` and
`run(options)`, which does the job and raises `InputError`.

Nothing heavy is imported before `run`: its options are read, and its help is printed,
without PyTorch. A new subcommand also needs its row in `elmoc.__main__`.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

# What `ElmoC.from_pretrained` opens.
ModelName = Annotated[
    str,
    Meta(
        description="model directory, run directory, or name of an installed model or "
        "one on a hub"
    ),
]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The model that a command reads."""

    model: ModelName
    vectors: Annotated[
        str | None,
        Meta(description="where the model's word vectors are, if they have moved"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class WordOptions(ModelOptions):
    """The uses of a word in a text that a command reads."""

    corpus: Annotated[
        str,
        Meta(description="tokenised text: a sentence a line, or rows"),
    ]
    word: Annotated[
        str,
        Meta(
            description="the word, as it is written in the text",
            extra={"option": "--word"},
        ),
    ]
    ignore_case: Annotated[
        bool, Meta(description="find it in upper and lower case")
    ] = False
    layer: Annotated[
        str,
        Meta(
            description="average, top, or a number from 0", extra={"metavar": "LAYER"}
        ),
    ] = "average"
    most: Annotated[int, Meta(ge=1, description="uses to read at most")] = 1000
    device: Annotated[str, Meta(description="auto, cpu, cuda or cuda:N")] = "cpu"
