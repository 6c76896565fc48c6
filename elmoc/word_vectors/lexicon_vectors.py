"""Vectors of a lexicon: a row for each word type, as a language model over a closed
vocabulary trains them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from elmoc.corpus import UNKNOWN
from elmoc.errors import InputError
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
        if (
            vectors.ndim != 2
            or len(vectors) != len(self._rows)
            or str(vectors.dtype) != "torch.float32"
        ):
            raise InputError(
                f"it has vectors {list(vectors.shape)} ({vectors.dtype}) of {len(words):,} words"
            )
        self.size: int = vectors.shape[1]

    def tensors(self) -> dict[str, Tensor]:
        return {"vectors": self.vectors, "words": as_bytes(self.words)}

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "LexiconVectors":
        return cls(
            tensors["vectors"], from_bytes(tensors["words"], list[str]), origin=origin
        )

    @cached_property
    def fingerprint(self) -> str:
        """A content hash of vectors and words."""
        return fingerprint(
            [
                "\n".join(self.words).encode(),
                self.vectors.contiguous().numpy().tobytes(),
            ]
        )

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        unknown = self._rows.get(UNKNOWN, -1)
        rows = np.array(
            [self._rows.get(word, unknown) for word in words], dtype=np.int64
        )
        return self.vectors.numpy()[rows] * (rows >= 0)[:, np.newaxis]
