"""Options of the learners of compact word vectors; the defaults are the papers'."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta


@dataclass(frozen=True, kw_only=True)
class CompactOptions:
    """Learn compact word vectors: compositional codes (Shu and Nakayama 2018), or ALONE
    (Takase and Kobayashi 2020).
    """

    kind: Annotated[
        Literal["codes", "alone"], Meta(description="what is learned: codes or alone")
    ]
    vectors: Annotated[
        str, Meta(description="word vectors: a fastText .bin, a .vec, a model, …")
    ]
    out: Annotated[
        str,
        Meta(pattern=r"\.safetensors$", description="the file to make, a .safetensors"),
    ]
    words: Annotated[
        Path,
        Meta(
            description="words, one a line, most frequent first, such as the "
            "lexicon.txt of a corpus",
            extra={"option": "--words", "metavar": "FILE"},
        ),
    ]
    most: Annotated[int, Meta(ge=0, description="the first N words alone (0: all)")] = 0
    learning_rate: Annotated[
        float,
        Meta(ge=0, le=1, description="of Adam (0: 1e-4 for codes, 1e-3 for alone)"),
    ] = 0.0
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of all that is random")] = 1
    codebooks: Annotated[int, Meta(ge=1, le=1_024, description="codes: M")] = 32
    entries: Annotated[
        int,
        Meta(ge=2, le=1 << 16, description="codes: K, the entries of each codebook"),
    ] = 16
    steps: Annotated[int, Meta(ge=1, description="codes: updates")] = 200_000
    filter: Annotated[
        Literal["binary", "real"], Meta(description="alone: what masks the base vector")
    ] = "real"
    inner_size: Annotated[
        int, Meta(ge=1, le=1 << 20, description="alone: D_inter, units between")
    ] = 1_200
    fixed_base: Annotated[
        bool, Meta(description="alone: keep the base vector as it is drawn")
    ] = False
    epochs: Annotated[
        int,
        Meta(ge=1, description="alone: how often as many words are read as there are"),
    ] = 1_000
