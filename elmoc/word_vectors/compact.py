"""Compact word vectors: many words and their character n-grams in a file of some
megabytes.

    words.hashes                 sorted 64-bit hashes of the words that have a row
    words.codes, .codebooks, …   their rows (see `coded_rows.py`)
    ngrams.buckets               sorted buckets of fastText's n-grams that have a row
    ngrams.codes, …              their rows
    ngrams.rest                  what stands for an n-gram that has none

A word has its own row, else the mean over its n-grams, else zeros. Two strings with the
same hash have the same row: of n rows, one in 2⁶⁴/n other strings is taken for a word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from elmoc.errors import InputError
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint
from elmoc.settings import convert
from elmoc.word_vectors.coded_rows import (
    CodedRows,
    FilteredRows,
    Filters,
    Rows,
    check_array,
    hash_words,
)
from elmoc.word_vectors.ngrams import NgramKind
from elmoc.word_vectors.stored import StoredVectors

FILE_NAME = "compact.safetensors"
# words whose n-grams are looked up at once: their rows take some 50 MB
_MOST_WORDS = 1024
# Blocks of a tensor that a fingerprint covers. Each may bring megabytes of a file into
# memory.
_BLOCKS = 4
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class Ngrams:
    """The n-grams that have a row.

    Raises `InputError` where the arrays do not fit together.
    """

    kind: NgramKind
    buckets: np.ndarray  # int32 [N], ascending
    rows: CodedRows  # N
    rest: np.ndarray  # float32 [E]: instead of the row of an n-gram that has none

    def __post_init__(self) -> None:
        check_array("ngrams.buckets", self.buckets, np.int32, (len(self.rows),))
        check_array("ngrams.rest", self.rest, np.float32, (self.rows.size,))
        if (np.diff(self.buckets) <= 0).any():
            raise InputError("ngrams.buckets are not sorted, or one is there twice")

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: the mean over the n-grams of each word; zeros where
        it has none.
        """
        vectors = np.zeros((len(words), self.rows.size), dtype=np.float32)
        for start in range(0, len(words), _MOST_WORDS):
            owners, buckets = self.kind.of_words(words[start : start + _MOST_WORDS])
            if len(owners):
                distinct, places = np.unique(buckets, return_inverse=True)
                found = find(self.buckets, distinct)
                rows = np.tile(self.rest, (len(distinct), 1))
                rows[found >= 0] = self.rows.vectors(found[found >= 0])
                first = np.flatnonzero(np.diff(owners, prepend=-1))
                counts = np.diff(first, append=len(owners))[:, None].astype(np.float32)
                vectors[start + owners[first]] = (
                    np.add.reduceat(rows[places], first, axis=0) / counts
                )
        return vectors


def find(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """int64 [n]: where each value stands among `ascending` ones; −1 where it does not."""
    places = np.searchsorted(ascending, values)
    there = places < len(ascending)
    there[there] = ascending[places[there]] == values[there]
    return np.where(there, places, -1)


@dataclass(frozen=True)
class _Description:
    """What a file says of itself, beside `format` and `version`."""

    kind: Literal["concatenated", "summed", "filtered"]
    filters: Filters | None = None
    ngrams: NgramKind | None = None


class CompactVectors(StoredVectors):
    """Word vectors of rows that are kept in a few bytes each; reading them takes NumPy
    alone.

    Args:
        hashes: uint64 [n], ascending, of the words that have a row.
        rows: n.
        ngrams: the vectors of all other strings are made of them, and are zeros without
            them.

    Raises `InputError` where these do not fit together.
    """

    file_name = FILE_NAME
    format = "elmoc-compact-vectors"

    def __init__(
        self,
        hashes: np.ndarray,
        rows: Rows,
        ngrams: Ngrams | None = None,
        origin: str = FILE_NAME,
    ) -> None:
        self.hashes = hashes
        self.rows = rows
        self.ngrams = ngrams
        self.origin = origin
        self.size = rows.size
        check_array("words.hashes", hashes, np.uint64, (len(rows),))
        if (hashes[1:] <= hashes[:-1]).any():
            raise InputError("words.hashes are not sorted, or one is there twice")
        if ngrams is not None and ngrams.rows.size != self.size:
            raise InputError(
                f"its rows are {self.size} and {ngrams.rows.size} numbers wide"
            )

    @classmethod
    def of_words(
        cls, words: Sequence[str], rows: Rows, ngrams: Ngrams | None = None
    ) -> "CompactVectors":
        """From the rows of words in the same order; of words with the same hash, the
        first one's row is kept.
        """
        hashes, first = np.unique(hash_words(words), return_index=True)
        return cls(hashes, rows.select(first), ngrams)

    def description(self) -> dict[str, Any]:
        filters = self.rows.filters if isinstance(self.rows, FilteredRows) else None
        kind = None if self.ngrams is None else self.ngrams.kind
        return super().description() | asdict(
            _Description(self.rows.kind, filters, kind)
        )

    def tensors(self) -> dict[str, Tensor]:
        arrays = {
            "words.hashes": self.hashes.view(np.int64)
        }  # not every release of PyTorch knows uint64
        arrays |= {f"words.{name}": array for name, array in self.rows.arrays().items()}
        if self.ngrams is not None:
            arrays |= {
                "ngrams.buckets": self.ngrams.buckets,
                "ngrams.rest": self.ngrams.rest,
            }
            arrays |= {
                f"ngrams.{name}": array
                for name, array in self.ngrams.rows.arrays().items()
            }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "CompactVectors":
        about = convert(info, _Description, where=origin)
        words = _part(tensors, "words.")
        parts = _part(tensors, "ngrams.")
        if (about.kind == FilteredRows.kind, bool(parts)) != (
            about.filters is not None,
            about.ngrams is not None,
        ):
            raise InputError("what it says of itself does not fit what it holds")
        hashes = words.pop("hashes").view(np.uint64)
        rows: Rows = (
            CodedRows(about.kind, **words)
            if about.filters is None
            else FilteredRows(about.filters, hashes, **words)
        )
        ngrams = None
        if about.ngrams is not None:
            buckets = parts.pop("buckets")
            rest = parts.pop("rest")
            ngrams = Ngrams(
                about.ngrams, buckets, CodedRows("concatenated", **parts), rest
            )
        return cls(hashes, rows, ngrams, origin)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the description, and of blocks spread over each tensor: opening a
        file does not read all of it.
        """
        parts = [repr(self.description()).encode()]
        for name, tensor in sorted(self.tensors().items()):
            content = tensor.numpy().reshape(-1).view(np.uint8)
            starts = np.linspace(
                0, max(0, len(content) - _BLOCK_BYTES), _BLOCKS
            ).astype(np.int64)
            parts += [f"{name} {len(content)}".encode()]
            parts += [
                content[start : start + _BLOCK_BYTES].tobytes()
                for start in dict.fromkeys(starts.tolist())
            ]
        return fingerprint(parts)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]; a string without a row gets the mean over its
        n-grams, or zeros.
        """
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        found = find(self.hashes, hash_words(words))
        vectors[found >= 0] = self.rows.vectors(found[found >= 0])
        if self.ngrams is not None:
            others = np.flatnonzero(found < 0)
            vectors[others] = self.ngrams.vectors(
                [words[index] for index in others.tolist()]
            )
        if not all_finite(vectors):
            raise InputError(
                f"{self.origin}: numbers of it are so large that vectors are not finite"
            )
        return vectors


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): each.numpy()
        for name, each in tensors.items()
        if name.startswith(prefix)
    }
