"""Compact word vectors: the rows of many words, and parts of which any other string is
made, in one file.

    words.hashes                 sorted 64-bit hashes of the words that have a row
    words.codes, .codebooks, …   their rows (see `coded_rows.py`)
    words.counts                 how often each word stands in the text that they were
                                 made for, where that is known
    ngrams.buckets               sorted buckets of fastText's n-grams that have a row
    ngrams.codes, …              their rows
    ngrams.rest                  what stands for an n-gram that has none
    pieces.tokenizer             or else how a teacher divides words (`pieces.py`)
    pieces.codes, …              the rows of its pieces

A word has its own row, else what its n-grams or pieces make, else zeros. Two
strings with the same hash have the same row: of n rows, one in 2⁶⁴/n other strings is
taken for a word.
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
    PlainRows,
    RowKind,
    Rows,
    hash_words,
)
from elmoc.word_vectors.fasttext_file import NgramKind
from elmoc.word_vectors.pieces import Pieces, set_means
from elmoc.word_vectors.sources import finite
from elmoc.word_vectors.stored import StoredVectors

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

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of them, by name."""
        own = {"buckets": self.buckets, "rest": self.rest}
        return prefixed(own | self.rows.arrays(), "ngrams.")

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
            set_means(vectors[start : start + _MOST_WORDS], rows[places], owners)
        return vectors


def find(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """int64 [n]: the place of each value in an array in ascending order; −1 where it is
    not there.
    """
    places = np.searchsorted(ascending, values)
    there = places < len(ascending)
    there[there] = ascending[places[there]] == values[there]
    return np.where(there, places, -1)


def stored_rows(kind: RowKind, arrays: Mapping[str, np.ndarray]) -> Rows:
    """Rows of a kind that needs nothing but its arrays."""
    if kind == PlainRows.kind:
        return PlainRows(**arrays)
    return CodedRows(kind, **arrays)


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
    # Nothing is filtered any more, but fingerprints cover the description.
    filters: None = None
    ngrams: NgramKind | None = None
    teacher: "_Teacher | None" = None


@dataclass(frozen=True)
class _Teacher:
    """What a file of a teacher's vectors says beside.

    pieces: how the rows of pieces are made.
    about: see `CompactVectors`.
    """

    pieces: RowKind
    about: str | None


class CompactVectors(StoredVectors):
    """Word vectors of rows that are kept in a few bytes each.

    Args:
        hashes: uint64 [n], ascending, of the words that have a row.
        rows: n.
        parts: the vectors of all other strings are made of them, and are zeros without
            them.
        origin: of the vectors.
        about: which model they were taken from, and its licence, as a card says it.
        counts: float32 [n], how often each word stands in the text that they were made
            for.

    Raises:
        InputError: the parts do not fit together.
    """

    file_name = "compact.safetensors"
    format = "elmoc-compact-vectors"

    def __init__(
        self,
        hashes: np.ndarray,
        rows: Rows,
        parts: Ngrams | Pieces | None = None,
        origin: str = file_name,
        *,
        about: str | None = None,
        counts: np.ndarray | None = None,
    ) -> None:
        self.hashes = hashes
        self.rows = rows
        self.parts = parts
        self.origin = origin
        self.about = about
        self.counts = counts
        self.size = rows.size
        check_ascending("words.hashes", hashes, np.uint64, len(rows))
        if counts is not None:
            check_array("words.counts", counts, np.float32, (len(rows),))
        if parts is not None and parts.rows.size != self.size:
            raise InputError(
                f"its rows are {self.size} and {parts.rows.size} numbers wide"
            )

    @classmethod
    def of_words(
        cls,
        words: Sequence[str],
        rows: Rows,
        parts: Ngrams | Pieces | None = None,
        *,
        about: str | None = None,
        counts: np.ndarray | None = None,
    ) -> "CompactVectors":
        """From the rows, and perhaps the counts, of words in the same order; of words
        with the same hash, the first one's row is kept.
        """
        hashes, first = np.unique(hash_words(words), return_index=True)
        if counts is not None:
            counts = counts[first].astype(np.float32)
        return cls(hashes, rows.select(first), parts, about=about, counts=counts)

    def description(self) -> dict[str, Any]:
        parts = self.parts
        teacher = (
            _Teacher(parts.rows.kind, self.about) if isinstance(parts, Pieces) else None
        )
        ngrams = parts.kind if isinstance(parts, Ngrams) else None
        about = asdict(_Description(self.rows.kind, ngrams=ngrams, teacher=teacher))
        # Fingerprints cover the description: one without a teacher says nothing of it.
        if teacher is None:
            del about["teacher"]
        return super().description() | about

    def tensors(self) -> dict[str, Tensor]:
        # As int64: some releases of PyTorch do not know uint64.
        arrays = {"words.hashes": self.hashes.view(np.int64)}
        arrays |= prefixed(self.rows.arrays(), "words.")
        if self.counts is not None:
            arrays["words.counts"] = self.counts
        if self.parts is not None:
            arrays |= self.parts.arrays()
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "CompactVectors":
        about = convert(info, _Description, where=origin)
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        words = taken(arrays, "words.")
        hashes = words.pop("hashes").view(np.uint64)
        counts = words.pop("counts", None)
        rows = stored_rows(about.kind, words)
        parts: Ngrams | Pieces | None = None
        if about.ngrams is not None:
            ngrams = taken(arrays, "ngrams.")
            parts = Ngrams(
                about.ngrams,
                buckets=ngrams.pop("buckets"),
                rest=ngrams.pop("rest"),
                rows=CodedRows("concatenated", **ngrams),
            )
        if about.teacher is not None:
            pieces = taken(arrays, "pieces.")
            parts = Pieces(
                pieces.pop("tokenizer").tobytes(),
                composition=pieces.pop("composition"),
                rows=stored_rows(about.teacher.pieces, pieces),
            )
        if arrays:
            raise InputError(f"it holds unknown arrays: {', '.join(arrays)}")
        return cls(
            hashes,
            rows,
            parts,
            origin,
            about=None if about.teacher is None else about.teacher.about,
            counts=counts,
        )

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
        """float32 [len(words), E]; a string without a row gets what its n-grams or
        pieces make, or zeros.
        """
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        found = find(self.hashes, hash_words(words))
        vectors[found >= 0] = self.rows.vectors(found[found >= 0])
        if self.parts is not None:
            others = np.flatnonzero(found < 0)
            vectors[others] = self.parts.vectors(
                [words[index] for index in others.tolist()]
            )
        return finite(vectors, words, self.origin)
