"""Coded rows: how the rows of a vector table are kept in a few bytes each, and become
float32 again.

    concatenated   product quantisation (Jégou et al. 2011): a row is the codewords of
                   M codebooks side by side
    summed         compositional codes (Shu and Nakayama 2018): a row is the sum of the
                   codewords of M codebooks
    plain          float16 numbers

Letters: n rows, E their width, M codebooks, K codewords of a codebook, d their width.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
import torch
import xxhash

from elmoc.errors import InputError
from elmoc.files.arrays import check_array

RowKind = Literal["concatenated", "summed", "plain"]
# Rows that become floats at once: 64 codebooks of a sum take 80 MB then, at E = 300.
MOST_ROWS = 1024
# The arrays that have something for each row.
_OF_ROWS = ("codes", "norms", "table")


def hash_words(words: Sequence[str]) -> np.ndarray:
    """uint64 [n]: the hash by which each string is found in the files of vectors."""
    encoded = (word.encode("utf-8", "surrogatepass") for word in words)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), dtype=np.uint64)


def pack_codes(codes: np.ndarray, entries: int) -> np.ndarray:
    """uint8 [n, ⌈M·log₂K / 8⌉]: codes [n, M] below `entries`, one behind the other, the
    least bit of each first.
    """
    places = np.arange((entries - 1).bit_length(), dtype=np.uint32)
    single = codes.astype(np.uint32)[:, :, None] >> places & 1  # [n, M, log₂K]
    return np.packbits(
        single.astype(np.uint8).reshape(len(codes), -1), axis=1, bitorder="little"
    )


def unpack_codes(packed: np.ndarray, codebooks: int, entries: int) -> np.ndarray:
    """int64 [n, M]: what `pack_codes` has packed."""
    bits = (entries - 1).bit_length()
    # A byte a code, the usual case, needs no bits.
    if bits == 8:
        return packed.astype(np.int64)
    single = np.unpackbits(packed, axis=1, count=codebooks * bits, bitorder="little")
    places = single.reshape(len(packed), codebooks, bits)
    return np.asarray(places @ (1 << np.arange(bits, dtype=np.int64)))


class Rows(ABC):
    """n rows, as few bytes each.

    kind: how they are made.
    size: E.
    """

    kind: RowKind
    size: int

    @abstractmethod
    def __len__(self) -> int: ...

    def select(self, rows: np.ndarray) -> Self:
        """These rows alone, in this order."""
        chosen = {
            name: each[rows]
            for name, each in vars(self).items()
            if name in _OF_ROWS and each is not None
        }
        return replace(self, **chosen)  # type: ignore[type-var]

    @abstractmethod
    def made(self, rows: np.ndarray) -> np.ndarray:
        """float32 [len(rows), E] of some rows."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of them, by name."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """float32 [len(rows), E], made in blocks."""
        vectors = np.empty((len(rows), self.size), dtype=np.float32)
        for start in range(0, len(rows), MOST_ROWS):
            some = rows[start : start + MOST_ROWS]
            vectors[start : start + len(some)] = self.made(some)
        return vectors


def rounded_product(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """float32 [n, E]: rows times a matrix, each row the same whatever stands beside it.

    Libraries add up the products of a row in an order that depends on the number of
    rows and on its place among them. In float64 the sums differ by less than what the
    rounding to float32 leaves out.
    """
    # PyTorch widens float16 in these two steps in a quarter of NumPy's time, and takes
    # no more threads than it was told to, which are one in a worker.
    wide = torch.from_numpy(matrix).float().double()
    product = torch.from_numpy(rows).double() @ wide
    return product.float().numpy()


@dataclass(frozen=True)
class CodedRows(Rows):
    """Rows made of codewords: `(norm · codewords side by side, or their sum) · matrix +
    mean`.

    kind: `concatenated` or `summed`.
    codes: uint8 [n, ⌈M·log₂K / 8⌉], of `pack_codes`.
    codebooks: float16 [M, K, d]; what they make is D wide: M·d side by side, d as a
        sum.
    norms: float16 [n]; None is 1 each.
    matrix: float16 [D, E]; None is the identity.
    mean: float32 [E]; None is 0.

    Raises:
        InputError: the arrays do not fit together.
    """

    kind: RowKind
    codes: np.ndarray
    codebooks: np.ndarray
    norms: np.ndarray | None = None
    matrix: np.ndarray | None = None
    mean: np.ndarray | None = None

    def __post_init__(self) -> None:
        [number, entries, width] = check_array(
            "codebooks", self.codebooks, np.float16, (None, None, None)
        )
        bits = (entries - 1).bit_length()
        [rows, _] = check_array(
            "codes", self.codes, np.uint8, (None, math.ceil(number * bits / 8))
        )
        size = number * width if self.kind == "concatenated" else width
        if self.norms is not None:
            check_array("norms", self.norms, np.float16, (rows,))
        if self.matrix is not None:
            [_, size] = check_array("matrix", self.matrix, np.float16, (size, None))
        if self.mean is not None:
            check_array("mean", self.mean, np.float32, (size,))
        object.__setattr__(self, "size", size)
        # Of a power of two, all that the bits can say are codes.
        is_power = entries == 1 << bits
        for start in range(0, 0 if is_power else rows, MOST_ROWS):
            packed = self.codes[start : start + MOST_ROWS]
            if unpack_codes(packed, number, entries).max() >= entries:
                raise InputError(
                    f"it has a code that is not below {entries:,}, the entries of a "
                    "codebook"
                )

    def __len__(self) -> int:
        return len(self.codes)

    def made(self, rows: np.ndarray) -> np.ndarray:
        number, entries, _ = self.codebooks.shape
        codes = unpack_codes(self.codes[rows], number, entries)
        # [n, M, d]
        chosen = self.codebooks[np.arange(number), codes].astype(np.float32)
        decoded = (
            chosen.sum(axis=1)
            if self.kind == "summed"
            else chosen.reshape(len(rows), -1)
        )
        if self.norms is not None:
            decoded = decoded * self.norms[rows].astype(np.float32)[:, None]
        if self.matrix is not None:
            decoded = rounded_product(decoded, self.matrix)
        return decoded if self.mean is None else decoded + self.mean


@dataclass(frozen=True)
class PlainRows(Rows):
    """Rows as they are.

    table: float16 [n, E].
    """

    table: np.ndarray
    kind: ClassVar[RowKind] = "plain"  # type: ignore[misc]

    def __post_init__(self) -> None:
        [_, size] = check_array("table", self.table, np.float16, (None, None))
        object.__setattr__(self, "size", size)

    def __len__(self) -> int:
        return len(self.table)

    def made(self, rows: np.ndarray) -> np.ndarray:
        return self.table[rows].astype(np.float32)
