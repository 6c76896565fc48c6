"""Options of a feature dump: which layer states of sentences are written, and how."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from elmoc.batches import BATCH_SIZE, BATCH_WORDS
from elmoc.errors import InputError
from elmoc.text.options import TextField

# Sentences of a feature file: they are looked at one by one.
MOST_SENTENCES = 1 << 22
# Words of a sentence in a feature file.
MOST_WORDS = 40_000
# Forms on disk; `LAYOUTS` has their readers and writers.
LayoutName = Literal["allennlp", "bilm", "e2e-coref", "flat"]


@dataclass(frozen=True, kw_only=True)
class DumpOptions:
    """What is written of the sentences, and how it is computed."""

    layers: Annotated[
        str,
        Meta(
            description="`all` L + 1 layers, the `top` one, their `average`, or "
            "indices such as `0,2` (0 is context-independent)",
            extra={
                "metavar": "LAYERS",
                "flags": {"--all": "all", "--top": "top", "--average": "average"},
            },
        ),
    ] = "all"
    dtype: Annotated[
        Literal["float32", "float16"], Meta(description="type of the numbers")
    ] = "float32"
    layout: Annotated[
        LayoutName,
        Meta(description="layout of the file", extra={"option": "--format"}),
    ] = "allennlp"
    sentence_map: Annotated[
        bool,
        Meta(
            description="write how sentences are found by their words, where the "
            "layout can: `sentence_to_index` of allennlp",
            extra={"flags": {"--forget-sentences": False}},
        ),
    ] = True
    allow_empty: Annotated[
        bool,
        Meta(
            description="write an array of no words for an empty line, in place of an "
            "error"
        ),
    ] = False
    documents: Annotated[
        bool,
        Meta(
            description="blank lines end documents, and are no entries; prints their "
            "number"
        ),
    ] = False
    field: TextField = None
    boundaries: Annotated[
        bool,
        Meta(
            description="write the states of <s> and </s>, too, before and behind the "
            "words' states"
        ),
    ] = False
    resume: Annotated[
        bool, Meta(description="go on with a dump that was stopped, or start one")
    ] = False
    batch_size: Annotated[int, Meta(ge=1, description="sentences a batch at most")] = (
        BATCH_SIZE
    )
    batch_words: Annotated[int, Meta(ge=1, description="words a batch at most")] = (
        BATCH_WORDS
    )

    def __post_init__(self) -> None:
        if self.documents and self.allow_empty:
            raise InputError(
                "--documents leaves out the blank lines that --allow-empty writes: "
                "give one of them"
            )
