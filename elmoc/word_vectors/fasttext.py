"""FastText vectors: word vectors of a `.bin` file, read from a memory map.

Words are looked up by `fasttext.cpp`, which is compiled on the user's machine, or in Python where there is no compiler.
"""

import ctypes
import mmap
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from elmoc.errors import InputError, reading, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import absolute_path, require_file
from elmoc.kernels.compiling import KernelBuildError, default_compiler, load_library

# The widest word vectors that are read: a damaged number can say any width.
MAX_SIZE = 1 << 16
_MAGIC = 793712314
_VERSIONS = (11, 12)
_SUPERVISED = 3  # of the kinds of model
# What a file begins with: magic, version, and the fields of `Header` among others. The dictionary follows.
_START = struct.Struct("<3i24x4i12x3i8xq")
# In the dictionary a word, a zero byte, its count (8 bytes) and type (1 byte); words come before labels.
_BEHIND_WORD = 10
_MATRIX = struct.Struct("<?2q")  # whether it is quantised, rows, columns; its numbers follow
_SOURCE = Path(__file__).with_suffix(".cpp")
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64

# Adds the vectors of words (UTF-8) to float32 [n, E] of zeros; a label keeps these.
Fill = Callable[[Sequence[bytes], np.ndarray], None]


@dataclass(frozen=True)
class Header:
    """The sizes of a file, by fastText's names.

    pruned: −1, a dictionary that is not pruned; only quantised files, which are not read, have others.
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


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character n-grams.

    Vectors are equal to the library's bit for bit. Raises `InputError` when the file is missing, foreign, quantised,
    truncated or damaged.

    description: what looks words up.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = absolute_path(path)
        require_file(path)
        with reading(path), open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            header = _read_header(content)
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
        return FastTextVectors, (self.origin,)  # another process maps the file, too, and shares its memory

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: fastText's vector of each string; a label of the file gets zeros."""
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        if words:
            self._fill([word.encode() for word in words], vectors)
        if not all_finite(vectors):
            word = words[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
            raise InputError(f"{self.origin}: the vector of {shortened(word)!r} has numbers that are not finite")
        return vectors

    def contents(self) -> tuple[Header, dict[bytes, int], np.ndarray]:
        """The header, how often each word occurs, most frequent first, and float32 [buckets, E], the rows of n-grams.

        The rows are mapped; their numbers may lie at any byte.
        """
        with open(self.origin, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header, counts, position = _read_header(content), dict[bytes, int](), _START.size
        for number in range(header.entries):
            end = content.find(b"\0", position)
            if number < header.words:
                counts[content[position:end]] = int.from_bytes(content[end + 1 : end + 9], "little")
            position = end + _BEHIND_WORD
        position += _MATRIX.size + 4 * header.words * header.dim
        numbers = np.frombuffer(content, np.float32, header.bucket * header.dim, position)
        return header, counts, numbers.reshape(header.bucket, header.dim)


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
        and header.entries == header.words + header.labels <= len(content) // _BEHIND_WORD
        and header.pruned == -1
    ):
        raise ValueError(f"its sizes cannot be true: {header}")
    return header


def _check_matrices(content: mmap.mmap, header: Header, position: int) -> None:
    """Compare the matrices behind the dictionary, of inputs and outputs, with the header and the size of the file."""
    outputs = header.labels if header.model == _SUPERVISED else header.words
    for rows in (header.words + header.bucket, outputs):
        quantised, *sizes = _MATRIX.unpack_from(content, position)
        if quantised or sizes != [rows, header.dim]:
            raise ValueError(f"a matrix is quantised, or not of {rows:,} × {header.dim:,} numbers")
        position += _MATRIX.size + 4 * rows * header.dim
    if position != len(content):
        raise ValueError(f"it has {len(content):,} bytes where {position:,} are expected")


class _File(ctypes.Structure):  # as in fasttext.cpp
    _fields_ = (
        ("content", _POINTER),
        ("length", _LONG),
        *((name, _LONG) for name in ("dim", "words", "bucket", "shortest", "longest", "entries")),
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
    library.add_vectors.argtypes = [_POINTER, ctypes.c_char_p, _POINTER, _LONG, _POINTER]
    return library, f"C++ compiled by {compiler}"


def _compiled_lookup(library: ctypes.CDLL, content: mmap.mmap, header: Header) -> tuple[int, Fill]:
    """Where the dictionary ends, and look-up by `fasttext.cpp`."""
    numbers = np.frombuffer(content, np.uint8)
    begins = np.empty(header.entries, np.int64)
    slots = np.zeros((1 << (2 * header.entries).bit_length(), 2), np.uint32)  # under half of them are taken
    file = _File(
        numbers.ctypes.data,
        len(content),
        *(header.dim, header.words, header.bucket, header.shortest, header.maxn, header.entries),
        begins.ctypes.data,
        slots.ctypes.data,
        len(slots) - 1,
    )
    file.kept = numbers, begins, slots  # it names their memory
    if not library.read_dictionary(ctypes.byref(file), _START.size):
        raise ValueError("its dictionary is truncated, or has other words and labels than its header says")

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)) + 2)
        text = b"<" + b"><".join(words) + b">"
        library.add_vectors(ctypes.byref(file), text, ends.ctypes.data, len(words), vectors.ctypes.data)

    return file.end, fill


def _python_lookup(content: mmap.mmap, header: Header) -> tuple[int, Fill]:
    """The same in Python, word by word."""
    rows: dict[bytes, int] = {}  # of words that are there twice the last
    position = _START.size
    for number in range(header.entries):
        end = content.find(b"\0", position)
        if end < 0 or content[end + _BEHIND_WORD - 1 : end + _BEHIND_WORD] != bytes([number >= header.words]):
            raise ValueError("its dictionary is truncated, or has other words and labels than its header says")
        rows[content[position:end]] = number
        position = end + _BEHIND_WORD
    start, size = position + _MATRIX.size, 4 * header.dim

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        for vector, word in zip(vectors, words, strict=True):
            own = rows.get(word)
            if own is not None and own >= header.words:
                continue
            numbers = [] if own is None else [own]
            if word != b"</s>" and header.maxn:
                grams = _ngrams(b"<" + word + b">", header.shortest, header.maxn)
                numbers += [header.words + _fnv(gram) % header.bucket for gram in grams]
            for number in numbers:
                vector += np.frombuffer(content, np.float32, header.dim, start + number * size)
            if numbers:
                vector *= np.float32(1.0 / len(numbers))

    return position, fill


def _fnv(text: bytes) -> int:
    """FNV-1a, which takes its bytes for signed in fastText."""
    value = 2166136261
    for byte in text:
        value = (value ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619 & 0xFFFFFFFF
    return value


def _ngrams(text: bytes, shortest: int, longest: int) -> list[bytes]:
    """The n-grams of a word between `<` and `>`, in fastText's order; a character begins at every byte but 10xxxxxx."""
    begins = [place for place, byte in enumerate(text) if byte & 0xC0 != 0x80]
    ends = [*begins[1:], len(text)]
    return [
        text[begin:end]
        for first, begin in enumerate(begins)
        for length, end in enumerate(ends[first : first + longest], 1)
        if length >= shortest and not (length == 1 and (begin == 0 or end == len(text)))
    ]
