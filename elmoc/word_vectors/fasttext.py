"""FastText vectors: word vectors of a `.bin` file, read from a memory map.

Words are looked up by `fasttext.cpp`, which is compiled on the user's machine, or in
Python where there is no compiler.
"""

import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from elmoc.errors import InputError, reading, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint_file
from elmoc.files.compression import require_file
from elmoc.kernels.compiling import KernelBuildError, default_compiler, load_library

# The widest word vectors that are read: a damaged number can say any width.
MAX_SIZE = 1 << 16
_MAGIC = 793712314
_VERSIONS = (11, 12)
_SUPERVISED = 3  # of the kinds of model
# What a file begins with: magic, version, and the fields of `Header` among others. The
# dictionary follows.
_START = struct.Struct("<3i24x4i12x3i8xq")
# In the dictionary a word, a zero byte, its count (8 bytes) and type (1 byte); words
# come before labels.
_BEHIND_WORD = 10
_MATRIX = struct.Struct(
    "<?2q"
)  # whether it is quantised, rows, columns; its numbers follow
# FNV-1a
_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)
# Words whose n-grams are looked up at once in Python: their places take some MB.
_MOST_WORDS = 1024
_SOURCE = Path(__file__).with_suffix(".cpp")
_POINTER = ctypes.c_void_p
_LONG = ctypes.c_int64

# Adds the vectors of words (UTF-8) to float32 [n, E] of zeros; a label keeps these.
Fill = Callable[[Sequence[bytes], np.ndarray], None]
# Words, int64 [V], and float32 [buckets, E], which is mapped: its numbers may lie at
# any byte.
Contents = tuple[list[str], np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Header:
    """The sizes of a file, by fastText's names.

    pruned: −1, a dictionary that is not pruned; only quantised files, which are not
    read, have others.
    """

    dim: int
    model: int
    bucket: int
    minn: int
    maxn: int
    entries: int
    words: int
    labels: int
    pruned: int

    @property
    def shortest(self) -> int:
        """The characters of the shortest n-grams."""
        return max(1, self.minn)


@dataclass(frozen=True)
class NgramKind:
    """Which character n-grams words have: fastText's, by lengths and number of buckets."""

    buckets: Annotated[int, Meta(ge=1, le=1 << 31)]
    shortest: Annotated[int, Meta(ge=1)]
    longest: Annotated[int, Meta(le=100)]

    def of_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """int64 [n] twice: of all n-grams of the words, in fastText's order, the place
        of the word, and the bucket.

        They are found as by `push_subwords` in fasttext.cpp: in the characters of the
        word between < and >, without < and > alone; bytes count as signed numbers.
        """
        encoded = [b"<%b>" % word.encode("utf-8", "surrogatepass") for word in words]
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        begins = np.flatnonzero((text & 0xC0) != 0x80)  # of characters
        lengths = np.diff(begins, append=len(text))
        signed = text.view(np.int8).astype(np.int32).view(np.uint32)
        byte_ends = np.cumsum([len(each) for each in encoded])
        word_of = np.searchsorted(byte_ends, begins, side="right")  # of each character
        last = (
            np.searchsorted(begins, byte_ends)[word_of] - 1
        )  # the last character of its word
        alone = (np.diff(word_of, prepend=-1) != 0) | (np.arange(len(begins)) == last)
        starts = np.arange(len(begins))
        hashes = np.full(len(begins), _BASIS)
        found = [np.empty(0, np.int64)]
        buckets = [np.empty(0, np.int64)]
        for length in range(1, self.longest + 1):
            inside = starts + length - 1 <= last[starts]
            starts = starts[inside]
            hashes = hashes[inside]
            read = starts + length - 1
            for byte in range(4):  # of a character in UTF-8, at most
                has = lengths[read] > byte
                hashes[has] = (hashes[has] ^ signed[begins[read[has]] + byte]) * _PRIME
            if length >= self.shortest:
                kept = ~alone[starts] if length == 1 else slice(None)
                found.append(starts[kept])
                buckets.append(hashes[kept].astype(np.int64) % self.buckets)
        first = np.concatenate(found)
        order = np.argsort(first, kind="stable")
        return word_of[first[order]], np.concatenate(buckets)[order]


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character
    n-grams.

    Vectors are equal to the library's bit for bit. Raises `InputError` when the file is
    missing, foreign, quantised, truncated or damaged.

    header: the sizes of the file.
    description: what looks words up.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = os.path.abspath(path)
        require_file(path)
        with reading(path), open(path, "rb") as file:
            self._content = content = mmap.mmap(
                file.fileno(), 0, access=mmap.ACCESS_READ
            )
            self.header = header = _read_header(content)
            try:
                library, self.description = _compiled(default_compiler())
            except KernelBuildError:
                self.description = "Python, without a C++ compiler"
                end, self._fill = _python_lookup(content, header)
            else:
                end, self._fill = _compiled_lookup(library, content, header)
            _check_matrices(content, header, end)
        self.size = header.dim

    def __reduce__(self) -> tuple[type["FastTextVectors"], tuple[str]]:
        return FastTextVectors, (
            self.origin,
        )  # another process maps the file, too, and shares its memory

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: fastText's vector of each string; a label of the
        file gets zeros.
        """
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        if words:
            self._fill([word.encode() for word in words], vectors)
        if not all_finite(vectors):
            word = words[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
            raise InputError(
                f"{self.origin}: the vector of {shortened(word)!r} has numbers that are not finite"
            )
        return vectors

    def contents(self) -> Contents:
        """The words, most frequent first, and how often each occurs, and the rows of
        n-grams.
        """
        entries, end = _read_dictionary(self._content, self.header)
        counts = dict(entries[: self.header.words])
        words = [word.decode("utf-8", "replace") for word in counts]
        return (
            words,
            np.array(list(counts.values())),
            _input_rows(self._content, self.header, end)[self.header.words :],
        )


def _read_header(content: mmap.mmap) -> Header:
    """The header of a file, if its sizes can be true: look-ups believe them."""
    magic, version, *numbers = _START.unpack_from(content)
    if magic != _MAGIC or version not in _VERSIONS:
        raise ValueError("it is not a fastText .bin file of version 11 or 12")
    if version == _VERSIONS[0] and numbers[1] == _SUPERVISED:
        numbers[4] = 0  # maxn, as the library does: models of before had no n-grams
    header = Header(*numbers)
    if not (
        1 <= header.dim <= MAX_SIZE
        and min(header.bucket, header.minn, header.labels) >= 0
        and 0 <= header.maxn <= 100
        and (header.bucket or header.maxn < header.shortest)
        and header.words >= 1
        and header.words + header.bucket < 1 << 31
        and header.entries
        == header.words + header.labels
        <= len(content) // _BEHIND_WORD
        and header.pruned == -1
    ):
        raise ValueError(f"its sizes cannot be true: {header}")
    return header


def _check_matrices(content: mmap.mmap, header: Header, position: int) -> None:
    """Compare the matrices behind the dictionary, of inputs and outputs, with the
    header and the size of the file.
    """
    outputs = header.labels if header.model == _SUPERVISED else header.words
    for rows in (header.words + header.bucket, outputs):
        quantised, *sizes = _MATRIX.unpack_from(content, position)
        if quantised or sizes != [rows, header.dim]:
            raise ValueError(
                f"a matrix is quantised, or not of {rows:,} × {header.dim:,} numbers"
            )
        position += _MATRIX.size + 4 * rows * header.dim
    if position != len(content):
        raise ValueError(
            f"it has {len(content):,} bytes where {position:,} are expected"
        )


class _File(ctypes.Structure):  # as in fasttext.cpp
    _fields_ = (
        ("content", _POINTER),
        ("length", _LONG),
        *(
            (name, _LONG)
            for name in ("dim", "words", "bucket", "shortest", "longest", "entries")
        ),
        ("begins", _POINTER),
        ("slots", _POINTER),
        ("mask", _LONG),
        ("end", _LONG),
    )


@lru_cache
def _compiled(compiler: str) -> tuple[ctypes.CDLL, str]:
    library, compiler = load_library(_SOURCE, compiler)
    library.add_vectors.restype = None
    library.read_dictionary.argtypes = [_POINTER, _LONG]
    library.add_vectors.argtypes = [
        _POINTER,
        ctypes.c_char_p,
        _POINTER,
        _LONG,
        _POINTER,
    ]
    return library, f"C++ compiled by {compiler}"


def _compiled_lookup(
    library: ctypes.CDLL, content: mmap.mmap, header: Header
) -> tuple[int, Fill]:
    """Where the dictionary ends, and look-up by `fasttext.cpp`."""
    numbers = np.frombuffer(content, np.uint8)
    begins = np.empty(header.entries, np.int64)
    slots = np.zeros(
        (1 << (2 * header.entries).bit_length(), 2), np.uint32
    )  # under half of them are taken
    file = _File(
        numbers.ctypes.data,
        len(content),
        *(
            header.dim,
            header.words,
            header.bucket,
            header.shortest,
            header.maxn,
            header.entries,
        ),
        begins.ctypes.data,
        slots.ctypes.data,
        len(slots) - 1,
    )
    file.kept = numbers, begins, slots  # it names their memory
    if not library.read_dictionary(ctypes.byref(file), _START.size):
        raise ValueError(
            "its dictionary is truncated, or has other words and labels than its header says"
        )

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)) + 2)
        text = b"<" + b"><".join(words) + b">"
        library.add_vectors(
            ctypes.byref(file), text, ends.ctypes.data, len(words), vectors.ctypes.data
        )

    return file.end, fill


def _read_dictionary(
    content: mmap.mmap, header: Header
) -> tuple[list[tuple[bytes, int]], int]:
    """The entries with their counts, and where the dictionary ends."""
    entries = []
    position = _START.size
    for number in range(header.entries):
        end = content.find(b"\0", position)
        behind = content[end : end + _BEHIND_WORD]
        if (
            end < 0
            or len(behind) < _BEHIND_WORD
            or behind[-1] != (number >= header.words)
        ):
            raise ValueError(
                "its dictionary is truncated, or has other words and labels than its header says"
            )
        entries.append((content[position:end], int.from_bytes(behind[1:9], "little")))
        position = end + _BEHIND_WORD
    return entries, position


def _input_rows(content: mmap.mmap, header: Header, dictionary_end: int) -> np.ndarray:
    """float32 [words + buckets, E], mapped."""
    rows = header.words + header.bucket
    numbers = np.frombuffer(
        content, np.float32, rows * header.dim, dictionary_end + _MATRIX.size
    )
    return numbers.reshape(rows, header.dim)


def _python_lookup(content: mmap.mmap, header: Header) -> tuple[int, Fill]:
    """The same in Python, word by word."""
    entries, end = _read_dictionary(content, header)
    numbers = {
        word: number for number, (word, _) in enumerate(entries)
    }  # of words that are there twice the last
    ngrams = NgramKind(max(1, header.bucket), header.shortest, header.maxn)

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        matrix = _input_rows(content, header, end)
        for start in range(0, len(words), _MOST_WORDS):
            block = words[start : start + _MOST_WORDS]
            owners, buckets = ngrams.of_words([word.decode() for word in block])
            bounds = np.searchsorted(owners, np.arange(len(block) + 1))
            for index, word in enumerate(block):
                own = numbers.get(word, -1)
                rows = [own] if own >= 0 else []
                if word != b"</s>":
                    rows += (
                        header.words + buckets[bounds[index] : bounds[index + 1]]
                    ).tolist()
                if not rows or own >= header.words:  # a label
                    continue
                vector = vectors[start + index]
                for row in rows:
                    vector += matrix[row]
                vector *= np.float32(1.0 / len(rows))

    return end, fill
