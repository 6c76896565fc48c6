"""Stored word vectors: what every kind has whose file goes with a model, and the
simplest kind, a row for each word type.

The file (`….safetensors`) holds the tensors that lookups need, and its own description
among the metadata of its header. A new kind is a subclass of `StoredVectors`
in a file of its own, an entry in `opening.vectors_of_tensors`, and its file in
`opening.STORED_FILES`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import msgspec
import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from elmoc.corpus import UNKNOWN
from elmoc.files.arrays import check_array
from elmoc.files.checksums import fingerprint
from elmoc.weights import contiguous
from elmoc.word_vectors.sources import WordVectors

T = TypeVar("T")


class StoredVectors(WordVectors, ABC):
    """Word vectors that can be written into a model directory.

    file_name: the name of their file there.
    format: of the file.
    version: of the format.
    """

    file_name: ClassVar[str]
    format: ClassVar[str]
    version: ClassVar[int] = 1

    def description(self) -> dict[str, Any]:
        """What the file says of itself, `format` and `version` among it."""
        return {"format": self.format, "version": self.version}

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What the file holds."""

    @cached_property
    def fingerprint(self) -> str:
        """A content hash of the description and the tensors."""
        parts = [repr(self.description()).encode()]
        for name, tensor in sorted(self.tensors().items()):
            parts += [name.encode(), tensor.numpy().tobytes()]
        return fingerprint(parts)

    @classmethod
    @abstractmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> Self:
        """From a description, without `format` and `version`, and finite tensors."""

    def write(self, path: Path | str) -> None:
        """Write the file in place, into a directory that is written as a whole or at a
        path that is renamed.
        """
        save_file(
            contiguous(self.tensors()),
            path,
            metadata={"elmoc": json.dumps(self.description())},
        )


def as_bytes(value: Any) -> Tensor:
    """JSON as a tensor."""
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def from_bytes(content: Tensor, kind: type[T]) -> T:
    """The value that `as_bytes` wrote, of a `kind`."""
    return msgspec.json.decode(content.numpy().tobytes(), type=kind)


class LexiconVectors(StoredVectors):
    """The vectors float32 [V, E] of the word types of a lexicon, as a language model
    over a closed vocabulary trains them; any other word has the vector of `<unk>`, or
    zeros.
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
        [_, self.size] = check_array(
            "vectors", vectors.numpy(), np.float32, (len(self._rows), None)
        )

    def tensors(self) -> dict[str, Tensor]:
        return {"vectors": self.vectors, "words": as_bytes(self.words)}

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "LexiconVectors":
        return cls(
            tensors["vectors"], from_bytes(tensors["words"], list[str]), origin=origin
        )

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        unknown = self._rows.get(UNKNOWN, -1)
        rows = np.array([self._rows.get(word, unknown) for word in words], np.int64)
        vectors: np.ndarray = self.vectors.numpy()[rows]
        vectors[rows < 0] = 0.0
        return vectors
