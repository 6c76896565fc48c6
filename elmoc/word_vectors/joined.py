"""Joined word vectors: several sources side by side as one, each with a scale.

    NAME.json             `JoinedRecord`: where the sources are
    joined.safetensors    the sources themselves, `0.…`, `1.…`, where they go with a
                          model

A word that a source does not know is zeros in its block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from torch import Tensor

from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_record, write_record
from elmoc.settings import convert
from elmoc.weights import prefixed
from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.stored import StoredVectors

Scale = Annotated[float, Meta(gt=0, description="what the vectors are multiplied by")]


@dataclass(frozen=True)
class Part:
    """A source of joined vectors.

    origin: from which it is opened; a file beside the record may have its name alone.
    fingerprint: of its vectors.
    """

    origin: str
    fingerprint: str
    scale: Scale


@dataclass(frozen=True)
class JoinedRecord:
    """The content of `NAME.json`."""

    parts: Annotated[list[Part], Meta(min_length=1)]


class JoinedVectors(StoredVectors):
    """Word vectors of several sources, side by side.

    Args:
        parts: the sources.
        scales: what the vectors of each are multiplied by.
        origin: of the vectors.

    Attributes:
        widths: of the sources.
        about: what the sources say of themselves, if any does.
    """

    file_name = "joined.safetensors"
    format = "elmoc-joined-vectors"

    def __init__(
        self,
        parts: Sequence[WordVectors],
        scales: Sequence[float],
        *,
        origin: str = file_name,
    ) -> None:
        self.parts: Sequence[Any] = parts
        self.scales = [float(scale) for scale in scales]
        self.origin = origin
        self.widths = [part.size for part in parts]
        self.size = sum(self.widths)
        said = [getattr(part, "about", None) for part in parts]
        self.about = "; ".join(filter(None, said)) or None

    @classmethod
    def read_record(cls, path: Path | str) -> JoinedRecord:
        """What was joined; no source is opened."""
        return read_record(path, JoinedRecord, format=cls.format, version=cls.version)

    def write_record(self, path: Path | str) -> None:
        """Write `NAME.json`; the sources stay where they are."""
        parts = [
            Part(part.origin, part.fingerprint, scale)
            for part, scale in zip(self.parts, self.scales, strict=True)
        ]
        write_record(
            path, JoinedRecord(parts), format=self.format, version=self.version
        )

    def description(self) -> dict[str, Any]:
        parts = [part.description() for part in self.parts]
        return super().description() | {"parts": parts, "scales": self.scales}

    def tensors(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for number, part in enumerate(self.parts):
            tensors |= prefixed(part.tensors(), f"{number}.")
        return tensors

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "JoinedVectors":
        """See `StoredVectors`; `parts` are vectors already."""
        scales = convert(info["scales"], list[Scale], where=origin)
        return cls(info["parts"], scales, origin=origin)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the fingerprints and scales of all parts."""
        return fingerprint(
            f"{part.fingerprint} {scale!r}".encode()
            for part, scale in zip(self.parts, self.scales, strict=True)
        )

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        blocks = [
            part.lookup(words) * np.float32(scale)
            for part, scale in zip(self.parts, self.scales, strict=True)
        ]
        return np.concatenate(blocks, axis=1)
