"""Joining word vectors: several sources become one, side by side.

Each source is scaled, so that the vectors of frequent words of a corpus are at a mean
distance (root of the mean square) of 1 from their mean: what words have in common,
which may be long, does not count. What is written is a small record: the sources stay
where they are.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.corpus import Corpus
from elmoc.errors import InputError, say
from elmoc.files.writing import locked
from elmoc.word_vectors.opening import open_word_vectors, origin_in

# The most frequent words, by which distances are measured.
_MEASURED_WORDS = 20_000


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """Which word vectors are joined."""

    corpus: Annotated[
        Path, Meta(description="corpus directory of words", extra={"metavar": "CORPUS"})
    ]
    origins: Annotated[
        list[str],
        Meta(description="word vectors of any kind", extra={"metavar": "VECTORS"}),
    ]
    output: Annotated[
        Path, Meta(description="record to make", extra={"metavar": "OUT.json"})
    ]

    def __post_init__(self) -> None:
        if self.output.suffix != ".json":
            raise InputError(f"{self.output} must be named .json")


def join_vectors(options: JoinOptions) -> None:
    """Write the record of joined word vectors, which `open_word_vectors` opens.

    Raises:
        InputError: the record exists, or a source cannot be read or knows no word.
    """
    # PyTorch is only needed here.
    from elmoc.word_vectors.joined import JoinedVectors

    with locked(options.output, new=True):
        corpus = Corpus(options.corpus)
        corpus.require_words()
        words = corpus.lexicon[:_MEASURED_WORDS]
        parts = []
        scales = []
        for origin in options.origins:
            # It is recorded, and opened again from anywhere.
            origin = origin_in(Path.cwd(), origin)
            vectors = open_word_vectors(origin, only=words)
            rows = vectors.lookup(words)
            known = rows[rows.any(axis=1)].astype(np.float64)
            distance = float(np.sqrt(known.var(axis=0).sum())) if len(known) else 0.0
            if distance == 0:
                raise InputError(
                    f"{origin} tells no two words of {corpus.path} apart: it may be of "
                    "another language"
                )
            parts.append(vectors)
            scales.append(1 / distance)
            say(f"{origin}: {vectors.size} numbers, scaled by {scales[-1]:.4g}")
        joined = JoinedVectors(parts, scales)
        joined.write_record(options.output)
    say(f"{options.output}: {joined.size} numbers a word")


main = partial(
    run_main,
    JoinOptions,
    join_vectors,
    prog="python -m data_scripts.join_vectors",
    description="Put several word vectors side by side, each scaled to differ as much "
    "between words.",
)

if __name__ == "__main__":
    sys.exit(main())
