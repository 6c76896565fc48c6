"""Options that all commands share which read text."""

from typing import Annotated

from msgspec import Meta

# The setting of all commands that read rows.
TextField = Annotated[
    str | None,
    Meta(
        description="the column, or key, that holds the text of rows (.jsonl, .csv, "
        ".tsv, .parquet, a saved dataset); by default `text`, or the only one with "
        "text",
        extra={"metavar": "NAME"},
    ),
]
