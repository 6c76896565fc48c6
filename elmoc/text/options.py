"""Options that all commands share which read text."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

# "auto" asks the beginning of each text.
Answer = Literal["auto", "yes", "no"]
TOKENISED = Meta(
    description="whether the text is tokenised already: one sentence a line, words "
    "split on white space (auto: decided for each file, by whether more of its "
    "punctuation stands apart than touches words)"
)

# The setting of all commands that read rows.
TextField = Annotated[
    str | None,
    Meta(
        description="the column, or key, that holds the text of rows (.jsonl, .csv, "
        ".tsv, .parquet); by default `text`, or the only one with text",
        extra={"metavar": "NAME"},
    ),
]


@dataclass(frozen=True, kw_only=True)
class RawTextOptions:
    """What is said of text that may be raw or rows."""

    tokenised: Annotated[Answer, TOKENISED] = "auto"
    keep: Annotated[
        tuple[str, ...],
        Meta(
            description="a regular expression: what matches it in raw text is one "
            "word, with _ for white space in it; may be given several times",
            extra={"metavar": "REGEX", "repeat": True},
        ),
    ] = ()
    field: TextField = None
