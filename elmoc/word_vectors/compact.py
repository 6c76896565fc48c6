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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmoc.errors import InputError
from elmoc.files.arrays import check_array
from elmoc.files.checksums import BLOCK_BYTES, block_starts, fingerprint
from elmoc.settings import convert
from elmoc.weights import prefixed, taken
from elmoc.word_vectors.coded_rows import (
    CodedRows,
    FilteredRows,
    Filters,
    RowKind,
    Rows,
    hash_words,
)
from elmoc.word_vectors.fasttext_file import NgramKind
from elmoc.word_vectors.sources import finite
from elmoc.word_vectors.stored import StoredVectors

FILE_NAME = "compact.safetensors"
# Words whose n-grams are looked up at once: their rows take some 50 MB.
_MOST_WORDS = 1024
# Blocks of a tensor that a fingerprint covers. Each may bring megabytes of a file into
# memory.
_BLOCKS = 4


@dataclass(frozen=True)
class Ngrams:
    """The n-grams that have a row.

    kind: how words are made of them.
    buckets: int32 [N], ascending.
    rows: N.
    rest: float32 [E], instead of the row of an n-gram that has none.

    Raises:
        InputError: the arrays do not fit together.
    """

    kind: NgramKind
    buckets: np.ndarray
    rows: CodedRows
    rest: np.ndarray

    def __post_init__(self) -> None:
        check_ascending("ngrams.buckets", self.buckets, np.int32, len(self.rows))
        check_array("ngrams.rest", self.rest, np.float32, (self.rows.size,))

    def vectors(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: the mean over the n-grams of each word; zeros where
        it has none.
        """
        vectors = np.zeros((len(words), self.rows.size), dtype=np.float32)
        for start in range(0, len(words), _MOST_WORDS):
            owners, buckets = self.kind.of_words(words[start : start + _MOST_WORDS])
            distinct, places = np.unique(buckets, return_inverse=True)
            found = find(self.buckets, distinct)
            rows = np.tile(self.rest, (len(distinct), 1))
            rows[found >= 0] = self.rows.vectors(found[found >= 0])
            # The n-grams of a word are side by side.
            first = np.flatnonzero(np.diff(owners, prepend=-1))
            counts = np.diff(first, append=len(owners)).astype(np.float32)
            sums = np.add.reduceat(rows[places], first, axis=0)
            vectors[start + owners[first]] = sums / counts[:, None]
        return vectors


def find(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """int64 [n]: the place of each value in an array in ascending order; −1 where it is
    not there.
    """
    places = np.searchsorted(ascending, values)
    there = places < len(ascending)
    there[there] = ascending[places[there]] == values[there]
    return np.where(there, places, -1)


def check_ascending(
    name: str, array: np.ndarray, dtype: type[np.generic], length: int
) -> None:
    """Check that numbers of a type are in ascending order, each there once.

    Raises:
        InputError: they are not.
    """
    check_array(name, array, dtype, (length,))
    if (array[1:] <= array[:-1]).any():
        raise InputError(f"{name} are not sorted, or one is there twice")


@dataclass(frozen=True)
class _Description:
    """What a file says of itself, beside `format` and `version`."""

    kind: RowKind
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
        origin: of the vectors.

    Raises:
        InputError: the parts do not fit together.
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
        check_ascending("words.hashes", hashes, np.uint64, len(rows))
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
        return super().description() | asdict(
            _Description(
                self.rows.kind,
                filters=getattr(self.rows, "filters", None),
                ngrams=None if self.ngrams is None else self.ngrams.kind,
            )
        )

    def tensors(self) -> dict[str, Tensor]:
        # As int64: some releases of PyTorch do not know uint64.
        arrays = {"words.hashes": self.hashes.view(np.int64)}
        arrays |= prefixed(self.rows.arrays(), "words.")
        if self.ngrams is not None:
            own = {"buckets": self.ngrams.buckets, "rest": self.ngrams.rest}
            arrays |= prefixed(own | self.ngrams.rows.arrays(), "ngrams.")
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "CompactVectors":
        about = convert(info, _Description, where=origin)
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        words = taken(arrays, "words.")
        hashes = words.pop("hashes").view(np.uint64)
        rows: Rows
        if about.kind == FilteredRows.kind:
            assert about.filters is not None, "it has no filters"
            rows = FilteredRows(about.filters, hashes, **words)
        else:
            rows = CodedRows(about.kind, **words)
        ngrams = None
        if about.ngrams is not None:
            parts = taken(arrays, "ngrams.")
            ngrams = Ngrams(
                about.ngrams,
                buckets=parts.pop("buckets"),
                rest=parts.pop("rest"),
                rows=CodedRows("concatenated", **parts),
            )
        if arrays:
            raise InputError(f"it holds unknown arrays: {', '.join(arrays)}")
        return cls(hashes, rows, ngrams, origin)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the description, and of blocks spread over each tensor: opening a
        file does not read all of it.
        """
        parts = [repr(self.description()).encode()]
        for name, tensor in sorted(self.tensors().items()):
            content = tensor.numpy().reshape(-1).view(np.uint8)
            parts.append(f"{name} {len(content)}".encode())
            for start in block_starts(len(content), _BLOCKS):
                parts.append(content[start : start + BLOCK_BYTES].tobytes())
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
        return finite(vectors, words, self.origin)
