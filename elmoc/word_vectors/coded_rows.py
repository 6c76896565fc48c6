"""Coded rows: how the rows of a vector table are kept in a few bytes each, and become float32 again.

    concatenated   product quantisation (Jégou et al. 2011): a row is the codewords of M codebooks side by side
    summed         compositional codes (Shu and Nakayama 2018): a row is the sum of the codewords of M codebooks
    filtered       ALONE (Takase and Kobayashi 2020): a row is a network's output for a base vector that is masked by
                   filters, which the hash of its word chooses; of the word alone nothing is kept

Letters: n rows, E their width, M codebooks (or filters), K codewords of a codebook, d their width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xxhash

from elmoc.errors import InputError
from elmoc.settings import setting

MOST_ENTRIES = 1 << 16
# Rows that become floats at once, at least: libraries add up the products of fewer rows in another order, and a row is
# to be the same whatever is looked up with it. At most: they take 5 MB then, at E = 300.
_LEAST_ROWS, _MOST_ROWS = 64, 4096


def hash_words(words: Sequence[str]) -> np.ndarray:
    """uint64 [n]: the hash by which each string is found."""
    hashes = [xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass")) for word in words]
    return np.array(hashes, dtype=np.uint64)


def bits_of(entries: int) -> int:
    """The bits of a code below `entries`: log₂K, rounded up."""
    return (entries - 1).bit_length()


def pack_codes(codes: np.ndarray, entries: int) -> np.ndarray:
    """uint8 [n, ⌈M·log₂K / 8⌉]: codes [n, M] below `entries`, one behind the other, the least bit of each first."""
    single = (codes.astype(np.uint32)[:, :, None] >> np.arange(bits_of(entries), dtype=np.uint32)) & np.uint32(1)
    return np.packbits(single.astype(np.uint8).reshape(len(codes), -1), axis=1, bitorder="little")


def unpack_codes(packed: np.ndarray, codebooks: int, entries: int) -> np.ndarray:
    """int64 [n, M]: what `pack_codes` has packed."""
    bits = bits_of(entries)
    if bits == 8:
        return packed.astype(np.int64)
    single = np.unpackbits(packed, axis=1, count=codebooks * bits, bitorder="little")
    codes: np.ndarray = single.reshape(len(packed), codebooks, bits) @ (1 << np.arange(bits, dtype=np.int64))
    return codes


class CodedRows:
    """Rows made of codewords: `(norm · codewords side by side, or their sum) · matrix + mean`.

    Args:
        kind: `concatenated` or `summed`.
        codes: uint8 [n, ⌈M·log₂K / 8⌉], of `pack_codes`.
        codebooks: float16 [M, K, d]; what they make is D wide: M·d side by side, d as a sum.
        norms: float16 [n]; None is 1 each.
        matrix: float16 [D, E]; None is the identity.
        mean: float32 [E]; None is 0.

    Raises `InputError` for arrays that do not fit together.
    """

    def __init__(
        self,
        kind: str,
        *,
        codes: np.ndarray,
        codebooks: np.ndarray,
        norms: np.ndarray | None = None,
        matrix: np.ndarray | None = None,
        mean: np.ndarray | None = None,
    ) -> None:
        self.kind, self.codes, self.codebooks = kind, codes, codebooks
        self.norms, self.matrix, self.mean = norms, matrix, mean
        number, self.entries, width = check_array("codebooks", codebooks, np.float16, (None, None, None))
        if not 2 <= self.entries <= MOST_ENTRIES:
            raise InputError(f"codebooks have 2 to {MOST_ENTRIES:,} entries, not {self.entries:,}")
        [rows, _] = check_array("codes", codes, np.uint8, (None, -(-number * bits_of(self.entries) // 8)))
        self.size = number * width if kind == "concatenated" else width
        if norms is not None:
            check_array("norms", norms, np.float16, (rows,))
        if matrix is not None:
            self.size = check_array("matrix", matrix, np.float16, (self.size, None))[1]
        if mean is not None:
            check_array("mean", mean, np.float32, (self.size,))
        self._codewords = codebooks.astype(np.float32)
        self._matrix = None if matrix is None else matrix.astype(np.float32)
        for start in range(0, rows if self.entries & (self.entries - 1) else 0, _MOST_ROWS):
            if unpack_codes(codes[start : start + _MOST_ROWS], number, self.entries).max() >= self.entries:
                raise InputError(f"it has a code that is not below {self.entries:,}, the entries of a codebook")

    def __len__(self) -> int:
        return len(self.codes)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of them, by name."""
        arrays = {name: getattr(self, name) for name in ("codes", "codebooks", "norms", "matrix", "mean")}
        return {name: array for name, array in arrays.items() if array is not None}

    def select(self, rows: np.ndarray) -> "CodedRows":
        """These rows alone, in this order."""
        own = {name: array[rows] for name, array in self.arrays().items() if name in ("codes", "norms")}
        return CodedRows(self.kind, **(self.arrays() | own))

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """float32 [len(rows), E]."""
        vectors = np.empty((len(rows), self.size), dtype=np.float32)
        for start in range(0, len(rows), _MOST_ROWS):
            some = rows[start : start + _MOST_ROWS]
            vectors[start : start + len(some)] = self._decoded(some)
        return vectors

    def _decoded(self, rows: np.ndarray) -> np.ndarray:
        count = len(rows)
        rows = np.pad(rows, (0, max(0, _LEAST_ROWS - count)), mode="edge")
        number, _, width = self.codebooks.shape
        codes = unpack_codes(self.codes[rows], number, self.entries)
        if self.kind == "concatenated":
            decoded = self._codewords[np.arange(number), codes].reshape(len(rows), number * width)
        else:
            decoded = np.zeros((len(rows), width), dtype=np.float32)
            for codebook, chosen in zip(self._codewords, codes.T, strict=True):
                decoded += codebook[chosen]
        if self.norms is not None:
            decoded *= self.norms[rows].astype(np.float32)[:, None]
        if self._matrix is not None:
            decoded = decoded @ self._matrix
        if self.mean is not None:
            decoded += self.mean
        return decoded[:count]


@dataclass(frozen=True)
class Filters:
    """ALONE's filters (Takase and Kobayashi 2020, Section 3): M of c fixed random columns each, none of them stored.

    size: D_o, the width of the base vector that they mask.
    filters: M.
    entries: c.
    seed: of the columns, and of what a word's hash chooses.
    zeros: p_o, the share of zeros in a binary filter; None for a real one.
    """

    size: int = setting(least=1, most=MOST_ENTRIES)
    filters: int = setting(least=1, most=64)
    entries: int = setting(least=2, most=MOST_ENTRIES)
    seed: int = setting(least=0)
    zeros: float | None = setting(None, above=0, below=1)

    @cached_property
    def columns(self) -> np.ndarray:
        """float32 [M, c, D_o]: of Bernoulli(1 − p_o^(1/M)) where binary, else Gaussian with deviation M^−½."""
        generator = np.random.Generator(np.random.Philox(key=self.seed))
        shape = self.filters, self.entries, self.size
        if self.zeros is None:
            return generator.standard_normal(shape, dtype=np.float32) / np.float32(self.filters**0.5)
        return (generator.random(shape, dtype=np.float32) >= self.zeros ** (1 / self.filters)).astype(np.float32)

    def numbers(self, hashes: np.ndarray) -> np.ndarray:
        """int64 [n, M]: the columns that words with these hashes (uint64) have, by the mixing step of SplitMix64."""
        steps = np.arange(1, self.filters + 1, dtype=np.uint64) + np.uint64(self.seed * self.filters % 2**63)
        mixed = hashes[:, None] + steps * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.entries)).astype(np.int64)

    def masks(self, hashes: np.ndarray) -> np.ndarray:
        """float32 [n, D_o]: m_w of words with these hashes; min(1, sum of its columns) where binary, else the sum."""
        masks = np.zeros((len(hashes), self.size), dtype=np.float32)
        for columns, chosen in zip(self.columns, self.numbers(hashes).T, strict=True):
            masks += columns[chosen]
        return masks if self.zeros is None else np.minimum(masks, 1)


class FilteredRows:
    """Rows that a network makes: e_w = W2 · max(0, W1 · (m_w ⊙ o)), m_w of the filters.

    Args:
        filters: which mask the base vector.
        hashes: uint64 [n], of the words.
        base: o, float32 [D_o].
        inner: W1, float16 [D_inter, D_o].
        outer: W2, float16 [E, D_inter].

    Raises `InputError` for arrays that do not fit together.
    """

    kind = "filtered"

    def __init__(
        self, filters: Filters, hashes: np.ndarray, *, base: np.ndarray, inner: np.ndarray, outer: np.ndarray
    ) -> None:
        self.filters, self.hashes, self.base, self.inner, self.outer = filters, hashes, base, inner, outer
        check_array("base", base, np.float32, (filters.size,))
        width, _ = check_array("inner", inner, np.float16, (None, filters.size))
        self.size, _ = check_array("outer", outer, np.float16, (None, width))
        self._inner, self._outer = inner.astype(np.float32), outer.astype(np.float32)

    def __len__(self) -> int:
        return len(self.hashes)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file holds of them, by name."""
        return {"base": self.base, "inner": self.inner, "outer": self.outer}

    def select(self, rows: np.ndarray) -> "FilteredRows":
        """These rows alone, in this order."""
        return FilteredRows(self.filters, self.hashes[rows], **self.arrays())

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """float32 [len(rows), E]."""
        vectors = np.empty((len(rows), self.size), dtype=np.float32)
        for start in range(0, len(rows), _MOST_ROWS):
            some = self.hashes[rows[start : start + _MOST_ROWS]]
            padded = np.pad(some, (0, max(0, _LEAST_ROWS - len(some))))
            hidden = np.maximum((self.filters.masks(padded) * self.base) @ self._inner.T, 0)
            vectors[start : start + len(some)] = (hidden @ self._outer.T)[: len(some)]
        return vectors


def check_array(name: str, array: np.ndarray, dtype: type[np.generic], shape: Sequence[int | None]) -> tuple[int, ...]:
    """The shape of an array; an `InputError` unless it has this type and shape, of which None is any length."""
    fits = array.ndim == len(shape) and all(
        wanted in (None, got) for wanted, got in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        wanted = " × ".join("any" if length is None else f"{length:,}" for length in shape)
        raise InputError(f"{name} are {array.dtype} of {array.shape}, not {np.dtype(dtype)} of {wanted}")
    return array.shape
