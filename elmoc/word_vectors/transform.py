"""Transforms: how raw word vectors become the vectors that an encoder reads or is
trained against.

A transform holds what has to be the same for every word, in the table of a corpus and
later when dumping: the vectors of `<s>` and `</s>`, and an affine map. `WordRows` keeps
the transformed vectors of the words that have been met.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import torch
from torch import Tensor

from elmoc.corpus import BEGIN, END
from elmoc.devices import CPU
from elmoc.errors import InputError, shortened, warn
from elmoc.files.arrays import all_finite
from elmoc.process import leave_threads_of_parent
from elmoc.word_vectors.coded_rows import rounded_product
from elmoc.word_vectors.sources import TransformKind, WordVectors

# The least variance of a direction in whitening, relative to the largest. A deviation
# under 0.3 % of the largest may come from the few digits that files give their numbers,
# and is zero where the words are fewer than the dimensions: it would count as much as
# any other.
WHITENING_FLOOR = 1e-5
# Rows that are in float64 at once: 160 MB at E = 300.
_BLOCK_ROWS = 1 << 16
# Bytes of what is kept of words, 65,000 types at the paper's size; a single call may
# need more.
MOST_BYTES = 256 * 2**20
# Word types without a vector that are remembered.
MOST_UNKNOWN = 100_000
# Share of words in another normal form than NFC from which on they are told.
MANY = 0.01
# Of the directions of `<s>` and `</s>` where the word vectors have none.
_SEED = 0


@dataclass(frozen=True)
class VectorTransform:
    """Raw vectors → vectors: boundary tokens replaced, then `(x − mean) · matrix` for
    every vector that is not zero.

    boundary: float32 [2, E], the raw vectors of `<s>` and `</s>`.
    mean: float32 [E].
    matrix: float32 [E, E].

    Raises:
        InputError: a number is not finite.
    """

    boundary: np.ndarray
    mean: np.ndarray | None = None
    matrix: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not all(map(all_finite, self.arrays.values())):
            raise InputError("the transform holds numbers that are not finite")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays by name, without those that are None."""
        return {name: array for name, array in vars(self).items() if array is not None}

    @property
    def content(self) -> list[bytes]:
        """Its arrays, each behind its name: what fingerprints are made of."""
        return [
            part
            for name, array in sorted(self.arrays.items())
            for part in (name.encode(), array.tobytes())
        ]

    def same_as(self, other: "VectorTransform") -> bool:
        """Whether both give the same vectors for the same raw ones."""
        return all(map(np.array_equal, vars(self).values(), vars(other).values()))

    def lookup(self, words: Sequence[str], vectors: WordVectors) -> np.ndarray:
        """float32 [len(words), E]: the transformed vectors of `words`."""
        return self.apply(words, vectors.lookup(words))

    def apply(self, words: Sequence[str], raw: np.ndarray) -> np.ndarray:
        """float32 [len(words), E] from the raw vectors of `words`; a word without a
        vector keeps its zeros.
        """
        # A copy, whose rows are changed.
        raw = np.array(raw, dtype=np.float32)
        for row, word in enumerate(words):
            if word in (BEGIN, END):
                raw[row] = self.boundary[int(word == END)]
        if self.mean is None:
            return raw
        transformed = raw - self.mean
        if self.matrix is not None:
            transformed = rounded_product(transformed, self.matrix)
        transformed[~raw.any(axis=1)] = 0.0
        return transformed


def boundary_vectors(
    vectors: WordVectors, mean_norm: float | Sequence[float]
) -> np.ndarray:
    """float32 [2, E]: raw vectors for `<s>` and `</s>`; instead of zeros, fixed
    directions of length `mean_norm`, of which vectors side by side have one a source:
    they are those of the sources alone.
    """
    boundary = np.array(vectors.lookup([BEGIN, END]), dtype=np.float32)
    widths = getattr(vectors, "widths", [vectors.size])
    norms = np.broadcast_to(mean_norm, len(widths))
    start = 0
    for width, norm in zip(widths, norms, strict=True):
        generator = np.random.Generator(np.random.Philox(key=_SEED))
        for row in boundary[:, start : start + width]:
            # Drawn for each, so that a direction does not depend on the other vector.
            direction = generator.standard_normal(width, dtype=np.float32)
            if not row.any():
                row[:] = direction * np.float32(norm / np.linalg.norm(direction))
        start += width
    return boundary


def fit_transform(
    kind: TransformKind, raw: np.ndarray, counts: np.ndarray, boundary: np.ndarray
) -> VectorTransform:
    """The transform of a kind, fitted to raw vectors.

    Args:
        kind: of the transform.
        raw: [V, E]; rows of zeros do not count.
        counts: [V], the weight of each row.
        boundary: float32 [2, E], see `VectorTransform`.

    Raises:
        InputError: the rows are all zeros, or all the same.
    """
    if kind == "none":
        return VectorTransform(boundary)
    size = raw.shape[1]
    total = 0.0
    mean = np.zeros(size)
    for weights, rows in _weighted_blocks(raw, counts):
        total += weights.sum()
        mean += weights @ rows
    if total == 0:
        raise InputError(
            f"{kind} needs word vectors, but every word of the lexicon has the zero "
            "vector"
        )
    mean /= total
    if kind == "centre":
        return VectorTransform(boundary, mean.astype(np.float32))
    covariance = np.zeros((size, size))
    for weights, rows in _weighted_blocks(raw, counts):
        centred = rows - mean
        covariance += (centred * weights[:, None]).T @ centred
    # In ascending order.
    values, components = np.linalg.eigh(covariance / total)
    # Less is what rounding leaves of equal vectors.
    if values[-1] <= np.finfo(np.float32).eps ** 2 * (mean @ mean):
        raise InputError(
            f"{kind} needs word vectors that differ, but all words have the same vector"
        )
    variances = np.maximum(values, WHITENING_FLOOR * values[-1])
    # ZCA: of all whitening maps the one that changes vectors least.
    matrix = components @ np.diag(1 / np.sqrt(variances)) @ components.T
    return VectorTransform(boundary, mean.astype(np.float32), matrix.astype(np.float32))


def _weighted_blocks(
    raw: np.ndarray, counts: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (weights [n], rows [n, E]) in float64 for blocks of `raw`; zero rows weigh
    nothing.
    """
    for start in range(0, len(raw), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        rows = raw[block].astype(np.float64)
        yield counts[block] * rows.any(axis=1).astype(np.float64), rows


def decomposed(words: Iterable[str]) -> list[str]:
    """The words that Unicode's normal form NFC, which nearly all text has, writes with
    fewer characters: they look like others, and are not the same.
    """
    return [word for word in words if len(normalize("NFC", word)) < len(word)]


class SentenceRows(NamedTuple):
    """Sentences whose words have been looked up.

    ids: int64 [n] for each sentence, rows of the table.
    table: float32 [types, width], what an encoder reads of each word; see `WordRows`.
    bounds: int64 [words + 1] for each sentence, where rows are of subwords: where the
        units of each word begin, and where the last ends, `<s>` not counted. None where
        rows are of words.
    """

    ids: list[Tensor]
    table: Tensor
    bounds: list[Tensor] | None = None

    def words(self, index: int) -> int:
        """How many words a sentence has, `<s>` and `</s>` not counted."""
        ids = self.ids[index]
        return len(ids) - 2 if self.bounds is None else len(self.bounds[index]) - 1

    @property
    def lengths(self) -> Tensor:
        """int64 [B]: the lengths of sentences, boundaries included."""
        lengths = [len(each) for each in self.ids]
        return torch.tensor(lengths, dtype=torch.int64, device=CPU)

    def padded(self) -> tuple[Tensor, Tensor]:
        """What the encoder reads: [B, T + 2, E], boundaries included, padded at the
        end, and the lengths, int [B].
        """
        ids = torch.nn.utils.rnn.pad_sequence(self.ids, batch_first=True)
        return self.table[ids], self.lengths


class WordRows:
    """A growing table of what an encoder reads of words; several threads may use it.

    Args:
        transform, vectors: of the words.
        read: makes the rows, float32 [n, width], of word vectors [n, E]; by default
            they are the vectors.

    unknown: the first `MOST_UNKNOWN` word types met that have no vector, whose rows are
        zeros, in the order in which they were met.
    """

    def __init__(
        self,
        transform: VectorTransform,
        vectors: WordVectors,
        read: Callable[[Tensor], Tensor] = lambda vectors: vectors,
    ) -> None:
        self._transform = transform
        self._vectors = vectors
        self._read = read
        nothing = torch.zeros(0, vectors.size, dtype=torch.float32, device=CPU)
        self._width = read(nothing).shape[1]
        self._lock = threading.Lock()
        self._most = MOST_BYTES // (4 * self._width)
        self._rows: dict[str, np.ndarray] = {}
        self.unknown: dict[str, None] = {}
        self._has_warned = False

    def look_up(self, sentences: Iterable[Sequence[str]]) -> SentenceRows:
        """The rows of sentences; what is returned stays good."""
        leave_threads_of_parent()
        # The number of each word type among those of the sentences.
        ids: dict[str, int] = {}
        rows = []
        for sentence in sentences:
            numbers = [ids.setdefault(word, len(ids)) for word in sentence]
            rows.append(torch.tensor(numbers, dtype=torch.int64, device=CPU))
        types = list(ids)
        with self._lock:
            new = [word for word in types if word not in self._rows]
            if len(self._rows) + len(new) > self._most:
                # It begins again.
                self._rows = {}
                new = types
            others = decomposed(new)
            if len(others) > MANY * len(new) and not self._has_warned:
                self._has_warned = True
                warn(
                    f"{shortened(others[0])!r} and other words are not in "
                    "Unicode's normal form NFC: unless the text that the model was "
                    "trained on was in the same form, give the model what "
                    "unicodedata.normalize('NFC', word) makes"
                )
            if new:
                found = self._transform.lookup(new, self._vectors)
                made = self._read(torch.from_numpy(found)).numpy()
                self._rows |= zip(new, made, strict=True)
                unknown = [new[row] for row in np.flatnonzero(~found.any(axis=1))]
                room = max(0, MOST_UNKNOWN - len(self.unknown))
                self.unknown |= dict.fromkeys(unknown[:room])
            known = [self._rows[word] for word in types]
            table = np.array(known, np.float32).reshape(-1, self._width)
        return SentenceRows(rows, torch.from_numpy(table))
