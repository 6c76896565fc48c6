"""Pieces of words: how a pretrained Transformer's tokeniser divides any string, and the
vectors of the pieces.

A string of several pieces is p̄ + [p̄ ‖ p_first ‖ p_last ‖ 1/n ‖ 1] · W, of its n pieces
with the mean p̄. W is fitted to words whose vectors are known: the mean alone is far
from what a Transformer makes of the pieces together.

Letters: N pieces of the tokeniser, E width of vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from elmoc.errors import InputError
from elmoc.files.arrays import check_array
from elmoc.weights import prefixed
from elmoc.word_vectors.coded_rows import MOST_ROWS, Rows, rounded_product

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The share of the mean square of a feature that is added to each in the regression.
_RIDGE = 1e-3


def open_tokenizer(content: bytes) -> "Tokenizer":
    """The tokeniser that a `tokenizer.json` describes."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(content)
    # Published files cut and pad sentences, which words are not.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def divide(tokenizer: "Tokenizer", words: Sequence[str]) -> list[list[int]]:
    """The numbers of the pieces of each word, as it stands behind a space; a word
    without a visible character may have none.
    """
    # The library takes no half of a surrogate pair.
    texts = [f" {word}".encode("utf-8", "replace").decode() for word in words]
    # One by one: by batches the library starts threads.
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


def set_means(vectors: np.ndarray, rows: np.ndarray, owners: np.ndarray) -> None:
    """Set the vectors of some words to the mean of the rows of their parts.

    Args:
        vectors: float32 [n, E], of the words.
        rows: float32 [m, E], of the parts; the parts of a word are side by side.
        owners: int [m], the word of each part, ascending.
    """
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    counts = np.diff(first, append=len(owners)).astype(np.float32)
    if len(first):
        vectors[owners[first]] = np.add.reduceat(rows, first, axis=0) / counts[:, None]


class Divided:
    """Words as what their pieces are made into.

    several: the places of words of several pieces.
    means: float32 [n, E], the mean over the pieces of each of all words; zeros without
        any.
    features: float32 [len(several), 3E + 2], what W is multiplied by.
    """

    def __init__(self, divided: Sequence[Sequence[int]], rows: Rows) -> None:
        lengths = np.array(list(map(len, divided)), dtype=np.int64)
        numbers = np.array([each for ids in divided for each in ids], dtype=np.int64)
        found = rows.vectors(numbers)
        self.means = np.zeros((len(divided), rows.size), dtype=np.float32)
        set_means(self.means, found, np.repeat(np.arange(len(divided)), lengths))
        self.several = np.flatnonzero(lengths > 1)
        ends = lengths.cumsum()[self.several]
        counts = lengths[self.several]
        parts = [
            self.means[self.several],
            found[ends - counts],
            found[ends - 1],
            1 / counts[:, None],
            np.ones((len(counts), 1)),
        ]
        self.features = np.concatenate(parts, axis=1).astype(np.float32)


@dataclass(frozen=True)
class Pieces:
    """The pieces of which strings without a row of their own are made.

    tokenizer: the content of a `tokenizer.json`.
    rows: N, in the order of the tokeniser's numbers.
    composition: W, float16 [3E + 2, E].

    Raises:
        InputError: the tokeniser has another number of pieces, or the arrays do not fit
            together.
    """

    tokenizer: bytes
    rows: Rows
    composition: np.ndarray

    def __post_init__(self) -> None:
        size = 1 + max(self._opened.get_vocab().values())
        if size != len(self.rows):
            raise InputError(f"it has {len(self.rows):,} rows for {size:,} pieces")
        width = self.rows.size
        shape = (3 * width + 2, width)
        check_array("pieces.composition", self.composition, np.float16, shape)

    @cached_property
    def _opened(self) -> "Tokenizer":
        return open_tokenizer(self.tokenizer)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of them, by name."""
        content = np.frombuffer(self.tokenizer, np.uint8).copy()
        own = {"tokenizer": content, "composition": self.composition}
        return prefixed(own | self.rows.arrays(), "pieces.")

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]; zeros for a word without a piece."""
        vectors = np.empty((len(words), self.rows.size), dtype=np.float32)
        for start in range(0, len(words), MOST_ROWS):
            block = divide(self._opened, words[start : start + MOST_ROWS])
            divided = Divided(block, self.rows)
            made = divided.means
            made[divided.several] += rounded_product(divided.features, self.composition)
            vectors[start : start + MOST_ROWS] = made
        return vectors


def fit_composition(
    divided: Sequence[Sequence[int]], rows: Rows, vectors: np.ndarray
) -> np.ndarray:
    """W, float16 [3E + 2, E], by ridge regression of what the mean lacks; zeros where
    no word has several pieces.

    Args:
        divided: the pieces of words.
        rows: of all pieces.
        vectors: [n, E] of the words.
    """
    width = 3 * rows.size + 2
    squares = np.zeros((width, width))
    products = np.zeros((width, rows.size))
    for start in range(0, len(divided), MOST_ROWS):
        block = Divided(divided[start : start + MOST_ROWS], rows)
        features = block.features.astype(np.float64)
        wanted = vectors[start : start + MOST_ROWS][block.several].astype(np.float64)
        squares += features.T @ features
        products += features.T @ (wanted - block.means[block.several])
    # So much that a few words change little.
    ridge = np.maximum(_RIDGE * squares.diagonal(), 1e-9)
    return np.linalg.solve(squares + np.diag(ridge), products).astype(np.float16)
