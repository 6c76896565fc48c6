"""Transforms: how raw word vectors become the vectors that an encoder reads or is trained against.

A transform holds what has to be the same for every word, in the table of a corpus and later when dumping: the vectors
of `<s>` and `</s>`, and an affine map.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError
from elmoc.files.arrays import all_finite
from elmoc.word_vectors.sources import WordVectors

TRANSFORMS = (
    "none, centre, remove-top=K (centre and remove the K top principal components), whiten, whiten=F (variances below "
    "the share F of the largest count as that share, so that such directions stay short)"
)
# The least F, and the one of `whiten`. A deviation under 0.3 % of the largest may come from the few digits that files
# give their numbers, and is zero where the words are fewer than the dimensions: it would count as much as any other.
WHITENING_FLOOR = 1e-5
_BLOCK_ROWS = 1 << 16
_SEED = 0  # of the directions of `<s>` and `</s>` where the word vectors have none


@dataclass(frozen=True)
class VectorTransform:
    """Raw vectors → vectors: boundary tokens replaced, then `(x − mean) · matrix` for every vector that is not zero.

    Raises `InputError` for numbers that are not finite.
    """

    boundary: np.ndarray  # float32 [2, E]: the raw vectors of `<s>` and `</s>`
    mean: np.ndarray | None = None  # float32 [E]
    matrix: np.ndarray | None = None  # float32 [E, E]

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            if not all_finite(array):
                raise InputError(f"the {name} of the transform holds numbers that are not finite")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays by name, without those that are None."""
        return {name: array for name, array in vars(self).items() if array is not None}

    def same_as(self, other: "VectorTransform") -> bool:
        """Whether both give the same vectors for the same raw ones."""
        mine, theirs = self.arrays, other.arrays
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def lookup(self, words: Sequence[str], vectors: WordVectors) -> np.ndarray:
        """float32 [len(words), E]: the transformed vectors of `words`."""
        return self.apply(words, vectors.lookup(words))

    def apply(self, words: Sequence[str], raw: np.ndarray) -> np.ndarray:
        """float32 [len(words), E] from the raw vectors of `words`; a word without a vector keeps its zeros."""
        raw = np.array(raw, dtype=np.float32)  # a copy
        for row, word in enumerate(words):
            if word in (BEGIN, END):
                raw[row] = self.boundary[int(word == END)]
        if self.mean is None:
            return raw
        transformed = raw - self.mean
        if self.matrix is not None:
            transformed = transformed @ self.matrix
        transformed[~raw.any(axis=1)] = 0.0
        return transformed


def boundary_vectors(vectors: WordVectors, mean_norm: float) -> np.ndarray:
    """float32 [2, E]: raw vectors for `<s>` and `</s>`; instead of zeros, fixed directions of length `mean_norm`."""
    boundary = np.array(vectors.lookup([BEGIN, END]), dtype=np.float32)
    generator = np.random.Generator(np.random.Philox(key=_SEED))
    for row in range(2):
        direction = generator.standard_normal(vectors.size, dtype=np.float32)
        if not boundary[row].any():
            boundary[row] = direction * np.float32(mean_norm / np.linalg.norm(direction))
    return boundary


@dataclass(frozen=True)
class TransformKind:
    """What a transform does besides the boundary vectors: one of `TRANSFORMS`, read from text by `parse`."""

    name: str  # the text itself, by which tables and model directories record it
    removed: int = 0  # K of `remove-top=K`
    floor: float = WHITENING_FLOOR  # F of `whiten=F`: the least variance of a direction, relative to the largest

    @classmethod
    def parse(cls, text: str) -> "TransformKind":
        """Raises `InputError` for a text that is none of `TRANSFORMS`."""
        match = re.fullmatch(r"none|centre|whiten|remove-top=([1-9][0-9]*)|whiten=(0?\.[0-9]+|[1-9]e-[0-9]+)", text)
        if match is None:
            raise InputError(f"unknown transform {text!r}: choose from {TRANSFORMS}")
        floor = float(match[2] or WHITENING_FLOOR)
        if floor < WHITENING_FLOOR:
            raise InputError(f"{text}: a share of variance is at least {WHITENING_FLOOR}")
        return cls(text, int(match[1] or 0), floor)

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays that its transforms of vectors of width `size` have."""
        names = {"none": ("boundary",), "centre": ("boundary", "mean")}.get(self.name, ("boundary", "mean", "matrix"))
        shapes = {"boundary": (2, size), "mean": (size,), "matrix": (size, size)}
        return {name: shapes[name] for name in names}

    def fit(self, raw: np.ndarray, counts: np.ndarray, boundary: np.ndarray) -> VectorTransform:
        """The transform with these boundary vectors, fitted to the rows of `raw` [V, E], each weighted by its count.

        Zero rows do not count. Raises `InputError` where nothing can be fitted to the rows.
        """
        if self.name == "none":
            return VectorTransform(boundary)
        size = raw.shape[1]
        if self.removed >= size:
            raise InputError(f"{self.name} leaves nothing of vectors of width {size}")
        total, mean = 0.0, np.zeros(size)
        for weights, rows in _weighted_blocks(raw, counts):
            total += weights.sum()
            mean += weights @ rows
        if total == 0:
            raise InputError(f"{self.name} needs word vectors, but every word of the lexicon has the zero vector")
        mean /= total
        if self.name == "centre":
            return VectorTransform(boundary, mean.astype(np.float32))
        covariance = np.zeros((size, size))
        for weights, rows in _weighted_blocks(raw, counts):
            centred = rows - mean
            covariance += (centred * weights[:, None]).T @ centred
        values, components = np.linalg.eigh(covariance / total)  # ascending
        if values[-1] <= np.finfo(np.float32).eps ** 2 * (mean @ mean):  # less than rounding
            raise InputError(f"{self.name} needs word vectors that differ, but those of all words are the same")
        if self.removed:
            top = components[:, -self.removed :]
            matrix = np.eye(size) - top @ top.T
        else:
            variances = np.maximum(values, self.floor * values[-1])
            matrix = components @ np.diag(1 / np.sqrt(variances)) @ components.T
        return VectorTransform(boundary, mean.astype(np.float32), matrix.astype(np.float32))


def _weighted_blocks(raw: np.ndarray, counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (weights [n], rows [n, E]) in float64 for blocks of `raw`; zero rows weigh nothing."""
    for start in range(0, len(raw), _BLOCK_ROWS):
        rows = raw[start : start + _BLOCK_ROWS].astype(np.float64)
        yield counts[start : start + _BLOCK_ROWS] * rows.any(axis=1).astype(np.float64), rows
