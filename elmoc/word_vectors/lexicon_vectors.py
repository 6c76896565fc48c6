"""Vectors of a lexicon: a row for each word type, as a language model over a closed
vocabulary trains them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from elmoc.corpus import UNKNOWN
from elmoc.files.arrays import check_array
from elmoc.files.checksums import fingerprint
from elmoc.word_vectors.stored import StoredVectors, as_bytes, from_bytes


class LexiconVectors(StoredVectors):
    """The vectors float32 [V, E] of the word types of a lexicon; any other word has the
    vector of `<unk>`, or zeros.
    """

    file_name = "lexicon.safetensors"
    format = "elmoc-lexicon-vectors"

    def __init__(
        self, vectors: Tensor, words: Sequence[str], *, origin: str = file_name
    ) -> None:
        self.vectors = vectors
        self.words = words
        self.origin = origin
        self._rows = {word: row for row, word in enumerate(words)}
        # A word that is there twice leaves a vector over.
        shape = (len(self._rows), None)
        [_, self.size] = check_array("vectors", vectors.numpy(), np.float32, shape)

    def tensors(self) -> dict[str, Tensor]:
        return {"vectors": self.vectors, "words": as_bytes(self.words)}

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "LexiconVectors":
        words = from_bytes(tensors["words"], list[str])
        return cls(tensors["vectors"], words, origin=origin)

    @cached_property
    def fingerprint(self) -> str:
        """A content hash of vectors and words."""
        words = "\n".join(self.words).encode()
        return fingerprint([words, self.vectors.numpy().tobytes()])

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        unknown = self._rows.get(UNKNOWN, -1)
        rows = np.array([self._rows.get(word, unknown) for word in words], np.int64)
        vectors: np.ndarray = self.vectors.numpy()[rows]
        vectors[rows < 0] = 0.0
        return vectors
