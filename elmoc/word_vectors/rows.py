"""Word rows: the transformed vectors of the words that have been met, each type looked up once, in bounded memory."""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmoc.process import leave_threads_of_parent
from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.transform import VectorTransform

# Bytes of the vectors that are kept; a single call may need more.
MOST_BYTES = 256 * 2**20
# Word types without a vector that are remembered.
MOST_UNKNOWN = 100_000


class SentenceRows(NamedTuple):
    """Sentences whose words have been looked up."""

    ids: list[Tensor]  # int64 [n] for each sentence: rows of the table
    table: Tensor  # float32 [types, E]
    unknown: frozenset[str]  # their words that have no vector; the rows of these are zeros
    # int64 [words + 1] for each sentence, where rows are of subwords: where the units of each word begin, and where the
    # last ends, `<s>` not counted; None where rows are of words
    bounds: list[Tensor] | None = None

    def words(self, index: int) -> int:
        """How many words a sentence has, `<s>` and `</s>` not counted."""
        return len(self.ids[index]) - 2 if self.bounds is None else len(self.bounds[index]) - 1

    def padded(self) -> tuple[Tensor, Tensor]:
        """What the encoder reads: [B, T + 2, E], boundaries included, padded at the end, and the lengths, int [B]."""
        ids = torch.nn.utils.rnn.pad_sequence(self.ids, batch_first=True)
        return self.table[ids], torch.tensor([len(each) for each in self.ids])


class WordRows:
    """A growing table of the vectors that an encoder reads; several threads may use it.

    unknown: the first `MOST_UNKNOWN` word types met that have no vector, whose rows are zeros, in the order in which
        they were met.
    """

    def __init__(self, transform: VectorTransform, vectors: WordVectors, *, most_bytes: int = MOST_BYTES) -> None:
        self._transform = transform
        self._vectors = vectors
        self._most = max(1, most_bytes // (4 * vectors.size))
        self._lock = threading.Lock()
        self._ids: dict[str, int] = {}
        self._zero: set[str] = set()
        self._table = np.empty((0, vectors.size), dtype=np.float32)
        self.unknown: dict[str, None] = {}

    def look_up(self, sentences: Iterable[Sequence[str]]) -> SentenceRows:
        """The rows of sentences; what is returned stays good."""
        leave_threads_of_parent()
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
            self._ids, self._zero = {}, set()
            self._table = np.empty((0, self._vectors.size), dtype=np.float32)
            new = list(types)
        if not new:
            return
        rows = self._transform.lookup(new, self._vectors)
        start, end = len(self._ids), len(self._ids) + len(new)
        if end > len(self._table):
            table = np.empty((max(end, min(self._most, 2 * len(self._table))), self._vectors.size), dtype=np.float32)
            table[:start] = self._table[:start]
            self._table = table
        self._table[start:end] = rows
        self._ids.update(zip(new, range(start, end), strict=True))
        zero = [new[index] for index in np.flatnonzero(~rows.any(axis=1))]
        self._zero.update(zero)
        for word in zero:
            if len(self.unknown) < MOST_UNKNOWN:
                self.unknown.setdefault(word)
