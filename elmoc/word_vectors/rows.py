"""Word rows: the transformed vectors of the words that have been met, each type looked up once, in bounded memory."""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.transform import VectorTransform

MOST_BYTES = 256 * 2**20
"""Of the vectors that are kept; a single call may need more."""
MOST_UNKNOWN = 100_000
"""Word types without a vector that are remembered."""


class SentenceRows(NamedTuple):
    """Sentences whose words have been looked up."""

    ids: list[Tensor]
    """int64 [n] for each sentence: rows of the table."""
    table: Tensor
    """float32 [types, E]."""
    unknown: frozenset[str]
    """Those of their words that have no vector; their rows are zeros."""

    def vectors(self, ids: Tensor) -> Tensor:
        """float32 [..., E] of rows [...]."""
        return self.table[ids]


class WordRows:
    """A growing table of the vectors that an encoder reads; several threads may use it.

    unknown: the word types met that have no vector, whose rows are zeros, in the order in which they were met; the
        first `MOST_UNKNOWN` of them.
    """

    def __init__(self, transform: VectorTransform, vectors: WordVectors, *, most_bytes: int = MOST_BYTES) -> None:
        self._transform = transform
        self._vectors = vectors
        self._most = max(1, most_bytes // (4 * vectors.size))
        self._lock = threading.Lock()
        self._forget()
        self.unknown: dict[str, None] = {}

    def look_up(self, sentences: Iterable[Sequence[str]]) -> SentenceRows:
        """The rows of sentences; what is returned stays good."""
        sentences = list(sentences)
        types = dict.fromkeys(word for sentence in sentences for word in sentence)
        with self._lock:
            self._add(types)
            table = self._table[[self._ids[word] for word in types]]
            unknown = frozenset(types.keys() & self._zero)
        ids = dict(zip(types, range(len(types)), strict=True))
        rows = [torch.tensor([ids[word] for word in sentence], dtype=torch.int64) for sentence in sentences]
        return SentenceRows(rows, torch.from_numpy(table), unknown)

    def _add(self, types: dict[str, None]) -> None:
        """Have all of these word types in the table."""
        new = [word for word in types if word not in self._ids]
        if len(self._ids) + len(new) > self._most:
            self._forget()
            new = list(types)
        if not new:
            return
        rows = self._transform.lookup(new, self._vectors)
        start = len(self._ids)
        self._reserve(start + len(new))
        self._table[start : start + len(new)] = rows
        self._ids.update(zip(new, range(start, start + len(new)), strict=True))
        zero = [new[index] for index in np.flatnonzero(~rows.any(axis=1))]
        self._zero.update(zero)
        for word in zero:
            if len(self.unknown) < MOST_UNKNOWN:
                self.unknown[word] = None

    def _forget(self) -> None:
        self._ids: dict[str, int] = {}
        self._zero: set[str] = set()
        self._table = np.empty((0, self._vectors.size), dtype=np.float32)

    def _reserve(self, rows: int) -> None:
        if rows > len(self._table):
            table = np.empty((max(rows, min(self._most, 2 * len(self._table))), self._vectors.size), dtype=np.float32)
            table[: len(self._ids)] = self._table[: len(self._ids)]
            self._table = table
