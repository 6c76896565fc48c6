"""Word rows: the transformed vectors of the words that have been met, each type looked up once, in bounded memory."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.transform import VectorTransform

MOST_BYTES = 256 * 2**20
"""Of the vectors that are kept; a single call may need more."""


class WordRows:
    """A growing table of the vectors that an encoder reads.

    unknown: the word types met that have no vector, whose rows are zeros, in the order in which they were met.
    """

    def __init__(self, transform: VectorTransform, vectors: WordVectors, *, most_bytes: int = MOST_BYTES) -> None:
        self._transform = transform
        self._vectors = vectors
        self._most = max(1, most_bytes // (4 * vectors.size))
        self._forget()
        self.unknown: dict[str, None] = {}

    def ids(self, sentences: Iterable[Sequence[str]]) -> list[Tensor]:
        """int64 [n] for each sentence: the rows of its words, which are good until the next call."""
        sentences = list(sentences)
        types = dict.fromkeys(word for sentence in sentences for word in sentence)
        new = [word for word in types if word not in self._ids]
        if len(self._ids) + len(new) > self._most:
            self._forget()
            new = list(types)
        if new:
            rows = self._transform.lookup(new, self._vectors)
            self.unknown.update(
                (word, None) for word, row in zip(new, rows, strict=True) if word not in self.unknown and not row.any()
            )
            self._reserve(len(self._ids) + len(new))
            self._table[len(self._ids) : len(self._ids) + len(new)] = rows
            self._ids.update(zip(new, range(len(self._ids), len(self._ids) + len(new)), strict=True))
        return [torch.tensor([self._ids[word] for word in sentence], dtype=torch.int64) for sentence in sentences]

    def vectors(self, ids: Tensor) -> Tensor:
        """float32 [..., E] of rows [...]."""
        return torch.from_numpy(self._table)[ids]

    def _forget(self) -> None:
        self._ids: dict[str, int] = {}
        self._table = np.empty((0, self._vectors.size), dtype=np.float32)

    def _reserve(self, rows: int) -> None:
        if rows > len(self._table):
            table = np.empty((max(rows, min(self._most, 2 * len(self._table))), self._vectors.size), dtype=np.float32)
            table[: len(self._ids)] = self._table[: len(self._ids)]
            self._table = table
