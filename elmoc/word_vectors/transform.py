"""How do raw word vectors become the vectors that an encoder reads or is trained against?

A transform holds what has to be the same for every word, in the table of a corpus and later when dumping: the vectors
of `<s>` and `</s>`, and the affine post-processing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError
from elmoc.word_vectors.sources import WordVectors

POST_PROCESSINGS = "none, centre, remove-top=K (centre and remove the K top principal components), whiten"
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class VectorTransform:
    """Raw vectors → vectors: boundary tokens replaced, then `(x − mean) · matrix` for every vector that is not zero.

    boundary  float32 [2, E]: the raw vectors of `<s>` and `</s>`
    mean      float32 [E] or None
    matrix    float32 [E, E] or None
    """

    boundary: np.ndarray
    mean: np.ndarray | None = None
    matrix: np.ndarray | None = None

    def same_as(self, other: "VectorTransform") -> bool:
        """Whether both make the same vectors of the same raw ones."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("boundary", "mean", "matrix"))
        return all(
            (mine is None) == (theirs is None) and (mine is None or np.array_equal(mine, theirs))
            for mine, theirs in pairs
        )

    def lookup(self, words: Sequence[str], vectors: WordVectors) -> np.ndarray:
        """float32 [len(words), E]: the processed vectors of `words`."""
        return self.apply(words, vectors.lookup(words))

    def apply(self, words: Sequence[str], raw: np.ndarray) -> np.ndarray:
        """float32 [len(words), E] from the raw vectors of `words`; a word without a vector keeps its zeros."""
        raw = self.with_boundaries(words, raw)
        if self.mean is None:
            return raw
        processed = raw - self.mean
        if self.matrix is not None:
            processed = processed @ self.matrix
        processed[~raw.any(axis=1)] = 0.0
        return processed

    def with_boundaries(self, words: Sequence[str], raw: np.ndarray) -> np.ndarray:
        """A float32 copy of `raw` in which `<s>` and `</s>` have their recorded vectors."""
        raw = np.array(raw, dtype=np.float32)
        for row, word in enumerate(words):
            if word == BEGIN:
                raw[row] = self.boundary[0]
            elif word == END:
                raw[row] = self.boundary[1]
        return raw


def boundary_vectors(vectors: WordVectors, mean_norm: float, seed: int = 0) -> np.ndarray:
    """float32 [2, E]: raw vectors for `<s>` and `</s>`.

    Each is the word vector of that string, or, where that is zero (a fastText model that never saw it), a fixed
    random direction of length `mean_norm`.
    """
    boundary = np.array(vectors.lookup([BEGIN, END]), dtype=np.float32)
    generator = np.random.Generator(np.random.Philox(key=seed))
    for row in range(2):
        direction = generator.standard_normal(vectors.size, dtype=np.float32)
        if not boundary[row].any():
            boundary[row] = direction * np.float32(mean_norm / np.linalg.norm(direction))
    return boundary


def fit_post_processing(name: str, raw: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Fit one of `POST_PROCESSINGS` to the rows of `raw` [V, E], each weighted by its count.

    Returns (mean [E], matrix [E, E]) as float32, either of them None where it is not needed. Zero rows do not count.
    """
    if name == "none":
        return None, None
    kind, _, argument = name.partition("=")
    removes = kind == "remove-top" and argument.isdigit() and 0 < int(argument) < raw.shape[1]
    if name not in ("centre", "whiten") and not removes:
        raise InputError(f"unknown post-processing {name!r}: choose from {POST_PROCESSINGS}")
    total, mean = 0.0, np.zeros(raw.shape[1])
    for weights, rows in _weighted_blocks(raw, counts):
        total += weights.sum()
        mean += weights @ rows
    if total == 0:
        raise InputError("post-processing needs word vectors, but every word of the lexicon has the zero vector")
    mean /= total
    if name == "centre":
        return mean.astype(np.float32), None
    covariance = np.zeros((raw.shape[1], raw.shape[1]))
    for weights, rows in _weighted_blocks(raw, counts):
        centred = rows - mean
        covariance += (centred * weights[:, None]).T @ centred
    values, components = np.linalg.eigh(covariance / total)  # ascending
    if removes:
        top = components[:, -int(argument) :]
        matrix = np.eye(raw.shape[1]) - top @ top.T
    else:
        floor = 1e-5 * values[-1]
        matrix = components @ np.diag(1 / np.sqrt(np.maximum(values, floor))) @ components.T
    return mean.astype(np.float32), matrix.astype(np.float32)


def _weighted_blocks(raw: np.ndarray, counts: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (weights [n], rows [n, E]) in float64 for blocks of `raw`; zero rows weigh nothing."""
    for start in range(0, len(raw), _BLOCK_ROWS):
        rows = raw[start : start + _BLOCK_ROWS].astype(np.float64)
        yield counts[start : start + _BLOCK_ROWS] * rows.any(axis=1).astype(np.float64), rows
