"""Stored word vectors: what every kind has whose file goes with a model.

The file (`….safetensors`) holds the tensors that lookups need, and its own description
among the metadata of its header. A new kind is a subclass here and an entry in
`opening.stored_kinds`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import msgspec
import torch
from safetensors.torch import save_file
from torch import Tensor

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
        metadata = {"elmoc": json.dumps(self.description())}
        save_file(contiguous(self.tensors()), path, metadata=metadata)


def as_bytes(value: Any) -> Tensor:
    """JSON as a tensor."""
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def from_bytes(content: Tensor, kind: type[T]) -> T:
    """The value that `as_bytes` wrote, of a `kind`."""
    return msgspec.json.decode(content.numpy().tobytes(), type=kind)
