"""Stored word vectors: those that a trained or imported network makes, whose file goes with the model.

The file (`….safetensors`) holds the weights, what else lookups need, and its own description among the metadata of its
header.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor

from elmoc.errors import InputError
from elmoc.files.records import convert, parse_json
from elmoc.word_vectors.sources import WordVectors

T = TypeVar("T")
ADVICE = "import the model again, or copy the file again"
METADATA = "elmoc"
"""The key of the description in the header."""


class StoredVectors(ABC):
    """The content of such a file."""

    file_name: ClassVar[str]
    """In model directories."""
    format: ClassVar[str]
    version: ClassVar[int] = 1

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What the file says of itself, `format` and `version` among it."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What the file holds."""

    @classmethod
    @abstractmethod
    def from_file(cls, info: Mapping[str, Any], tensors: dict[str, Tensor], where: str) -> Self:
        """From a description, without `format` and `version`, and finite tensors; raises `InputError`."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A content hash of all that a lookup depends on."""

    @abstractmethod
    def word_vectors(self, origin: str) -> WordVectors:
        """The vectors, which are read from `origin`; an `InputError` where parts do not fit each other."""

    def write(self, path: Path | str) -> None:
        """Write the file in place, into a directory that is written as a whole or at a path that is renamed."""
        tensors = {name: tensor.contiguous() for name, tensor in self.tensors().items()}
        save_file(tensors, path, metadata={METADATA: json.dumps(self.description())})


def as_bytes(value: Any) -> Tensor:
    """JSON as a tensor."""
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def from_bytes(name: str, content: Tensor, kind: type[T]) -> T:
    """The value that `as_bytes` wrote as the tensor `name`, of a `kind`."""
    if content.dtype != torch.uint8:
        raise InputError(f"{name} has the type {content.dtype}, where torch.uint8 is expected")
    value = parse_json(content.numpy().tobytes(), where=name, advice="it is damaged")
    return convert(value, kind, where=name, advice="it is damaged")
