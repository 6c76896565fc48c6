"""Pieces of words: how a pretrained Transformer's tokeniser divides any string, and the
vectors of the pieces.

Letters: N pieces of the tokeniser, E width of vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from elmoc.errors import InputError
from elmoc.weights import prefixed
from elmoc.word_vectors.coded_rows import Rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Words that are divided at once: the rows of their pieces take some megabytes.
_MOST_WORDS = 1024


def open_tokenizer(content: bytes) -> "Tokenizer":
    """The tokeniser that a `tokenizer.json` describes.

    Raises:
        InputError: the library `tokenizers` is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError(
            "vectors of a teacher divide words by tokenizers: pip install tokenizers"
        ) from error
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
        sums = np.add.reduceat(rows, first, axis=0)
        vectors[owners[first]] = sums / counts[:, None]


@dataclass(frozen=True)
class Pieces:
    """The pieces of which strings without a row of their own are made.

    tokenizer: the content of a `tokenizer.json`.
    rows: N, in the order of the tokeniser's numbers; those of its marks, such as
        `[CLS]`, are zeros.

    Raises:
        InputError: the tokeniser has another number of pieces.
    """

    tokenizer: bytes
    rows: Rows

    def __post_init__(self) -> None:
        size = self._opened.get_vocab_size()
        if size != len(self.rows):
            raise InputError(f"it has {len(self.rows):,} rows for {size:,} pieces")

    @cached_property
    def _opened(self) -> "Tokenizer":
        return open_tokenizer(self.tokenizer)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of them, by name."""
        content = np.frombuffer(self.tokenizer, np.uint8).copy()
        return prefixed({"tokenizer": content} | self.rows.arrays(), "pieces.")

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: the mean over the pieces of each word; zeros where
        it has none.
        """
        vectors = np.zeros((len(words), self.rows.size), dtype=np.float32)
        for start in range(0, len(words), _MOST_WORDS):
            divided = divide(self._opened, words[start : start + _MOST_WORDS])
            owners = np.repeat(np.arange(len(divided)), list(map(len, divided)))
            numbers = np.array([each for ids in divided for each in ids], np.int64)
            block = vectors[start : start + _MOST_WORDS]
            set_means(block, self.rows.vectors(numbers), owners)
        return vectors
