"""Coded rows: how the rows of a vector table are kept in a few bytes each, and become
float32 again.

    concatenated   product quantisation (Jégou et al. 2011): a row is the codewords of
                   M codebooks side by side
    summed         compositional codes (Shu and Nakayama 2018): a row is the sum of the
                   codewords of M codebooks
    filtered       ALONE (Takase and Kobayashi 2020): a row is a network's output for a
                   base vector that is masked by filters, which the hash of its word
                   chooses; nothing is kept of the word alone
    plain          float16 numbers

Letters: n rows, E their width, M codebooks (or filters), K codewords of a codebook, d
their width.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import xxhash
from msgspec import Meta

from elmoc.errors import InputError
from elmoc.files.arrays import check_array

RowKind = Literal["concatenated", "summed", "filtered", "plain"]
# Rows that become floats at once, at least: libraries add up the products of fewer rows
# in another order, and a row is to be the same whatever is looked up with it. At most:
# 64 codebooks of a sum take 80 MB then, at E = 300.
LEAST_ROWS = 64
MOST_ROWS = 1024
# The arrays that have something for each row.
_OF_ROWS = ("codes", "norms", "hashes", "table")


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
        """What a file holds of them, by name, beside the hashes of their words."""
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name != "hashes"
        }

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """float32 [len(rows), E], made in blocks, the last one filled up."""
        vectors = np.empty((len(rows), self.size), dtype=np.float32)
        for start in range(0, len(rows), MOST_ROWS):
            some = rows[start : start + MOST_ROWS]
            padded = np.pad(some, (0, max(0, LEAST_ROWS - len(some))), mode="edge")
            vectors[start : start + len(some)] = self.made(padded)[: len(some)]
        return vectors


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
            decoded = decoded @ self.matrix.astype(np.float32)
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


@dataclass(frozen=True)
class Filters:
    """ALONE's filters (Takase and Kobayashi 2020, Section 3): M of c fixed random
    columns each, none of them stored.

    size: D_o, of the base vector that they mask.
    filters: M.
    entries: c.
    seed: of the columns, and of what a word's hash chooses.
    zeros: p_o, the share of zeros of a binary filter; None is a real one.
    """

    # A damaged number could make gigabytes of columns. Within these bounds they take
    # 300 MB; the paper's take 600 KB.
    size: Annotated[int, Meta(ge=1, le=4096)]
    filters: Annotated[int, Meta(ge=1, le=16)]
    entries: Annotated[int, Meta(ge=2, le=1024)]
    seed: Annotated[int, Meta(ge=0)]
    zeros: Annotated[float, Meta(gt=0, lt=1)] | None = None

    @cached_property
    def columns(self) -> np.ndarray:
        """float32 [M, c, D_o]: of Bernoulli(1 − p_o^(1/M)) where binary, else Gaussian
        with deviation M^−½.
        """
        generator = np.random.Generator(np.random.Philox(key=self.seed))
        shape = (self.filters, self.entries, self.size)
        if self.zeros is None:
            drawn = generator.standard_normal(shape, dtype=np.float32)
            return drawn / np.float32(self.filters**0.5)
        least = self.zeros ** (1 / self.filters)
        return (generator.random(shape, dtype=np.float32) >= least).astype(np.float32)

    def numbers(self, hashes: np.ndarray) -> np.ndarray:
        """int64 [n, M]: the columns that words with these hashes (uint64) have, by the
        mixing step of SplitMix64.
        """
        # Constants of SplitMix64 (Steele et al. 2014).
        first = np.uint64(self.seed * self.filters % 2**63)
        steps = np.arange(1, self.filters + 1, dtype=np.uint64) + first
        mixed = hashes[:, None] + steps * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.entries)).astype(np.int64)

    def masks(self, hashes: np.ndarray) -> np.ndarray:
        """float32 [n, D_o]: m_w of words with these hashes; min(1, sum of its columns)
        where binary, else the sum.
        """
        masks = np.zeros((len(hashes), self.size), dtype=np.float32)
        for columns, chosen in zip(self.columns, self.numbers(hashes).T, strict=True):
            masks += columns[chosen]
        return masks if self.zeros is None else np.minimum(masks, 1)


@dataclass(frozen=True)
class FilteredRows(Rows):
    """Rows that a network makes: e_w = W2 · max(0, W1 · (m_w ⊙ o)), m_w of the filters.

    filters: which give the masks.
    hashes: uint64 [n], of the words.
    base: o, float32 [D_o].
    inner: W1, float16 [D_inter, D_o].
    outer: W2, float16 [E, D_inter].

    Raises:
        InputError: the arrays do not fit together.
    """

    filters: Filters
    hashes: np.ndarray
    base: np.ndarray
    inner: np.ndarray
    outer: np.ndarray
    kind: ClassVar[RowKind] = "filtered"  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_array("base", self.base, np.float32, (self.filters.size,))
        check_array("inner", self.inner, np.float16, (None, self.filters.size))
        [size, _] = check_array(
            "outer", self.outer, np.float16, (None, len(self.inner))
        )
        object.__setattr__(self, "size", size)

    def __len__(self) -> int:
        return len(self.hashes)

    def made(self, rows: np.ndarray) -> np.ndarray:
        masked = self.filters.masks(self.hashes[rows]) * self.base
        hidden = np.maximum(masked @ self.inner.T.astype(np.float32), 0)
        return hidden @ self.outer.T.astype(np.float32)
