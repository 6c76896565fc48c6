"""FastText vectors: word vectors of a `.bin` file, which is mapped into memory.

Words are looked up by `fasttext.cpp`, which is compiled on the user's machine, or in
Python where there is no compiler.
"""

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from elmoc.errors import InputError, reading, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint_file
from elmoc.files.compression import require_file
from elmoc.kernels.compiling import KernelBuildError, default_compiler, load_library
from elmoc.word_vectors.fasttext_file import (
    BAD_DICTIONARY,
    DICTIONARY,
    Header,
    check_matrices,
    input_rows,
    read_dictionary,
    read_header,
)
from elmoc.word_vectors.ngrams import NgramKind

# Words whose n-grams are looked up at once in Python: their places take some MB.
_MOST_WORDS = 1024
_SOURCE = Path(__file__).with_suffix(".cpp")
_POINTER = ctypes.c_void_p
_LONG = ctypes.c_int64

# Adds the vectors of words (UTF-8) to float32 [n, E] of zeros; a label keeps these.
Fill = Callable[[Sequence[bytes], np.ndarray], None]
# Words, int64 [V], float32 [buckets, E]: see `contents`.
Contents = tuple[list[str], np.ndarray, np.ndarray]


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character
    n-grams. Vectors are equal to the library's bit for bit.

    header: the sizes of the file.
    description: how words are looked up.

    Raises:
        InputError: the file is missing, foreign, quantised, truncated or damaged.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = os.path.abspath(path)
        require_file(path)
        with reading(path), open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._content = content
            self.header = read_header(content)
            try:
                library, self.description = _compiled(default_compiler())
            except KernelBuildError:
                self.description = "Python, without a C++ compiler"
                end, self._fill = _python_lookup(content, self.header)
            else:
                end, self._fill = _compiled_lookup(library, content, self.header)
            check_matrices(content, self.header, end)
        self.size = self.header.dim

    def __reduce__(self) -> tuple[type["FastTextVectors"], tuple[str]]:
        # Another process maps the file, too, and shares its memory.
        return FastTextVectors, (self.origin,)

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
            # Half of a surrogate pair, too, which is no UTF-8, has a vector.
            encoded = [word.encode("utf-8", "surrogatepass") for word in words]
            self._fill(encoded, vectors)
        if not all_finite(vectors):
            is_finite = np.isfinite(vectors).all(axis=1)
            word = shortened(words[int(np.argmin(is_finite))])
            raise InputError(
                f"{self.origin}: the vector of {word!r} has numbers that are not finite"
            )
        return vectors

    def contents(self) -> Contents:
        """The words, most frequent first; int64 [V], how often each occurs; and
        float32 [buckets, E], the rows of n-grams, mapped.
        """
        entries, end = read_dictionary(self._content, self.header)
        counts = dict(entries[: self.header.words])
        words = [word.decode("utf-8", "replace") for word in counts]
        rows = input_rows(self._content, self.header, end)
        return words, np.array(list(counts.values())), rows[self.header.words :]


class _File(ctypes.Structure):
    """As `File` in fasttext.cpp."""

    _fields_ = (
        ("content", _POINTER),
        ("length", _LONG),
        ("dim", _LONG),
        ("words", _LONG),
        ("bucket", _LONG),
        ("shortest", _LONG),
        ("longest", _LONG),
        ("entries", _LONG),
        ("begins", _POINTER),
        ("slots", _POINTER),
        ("mask", _LONG),
        ("end", _LONG),
    )


@lru_cache
def _compiled(compiler: str) -> tuple[ctypes.CDLL, str]:
    """The library of `fasttext.cpp`, and how it was made."""
    library, compiler = load_library(_SOURCE, compiler)
    text = ctypes.c_char_p
    library.read_dictionary.argtypes = [_POINTER, _LONG]
    library.add_vectors.argtypes = [_POINTER, text, _POINTER, _LONG, _POINTER]
    library.add_vectors.restype = None
    return library, f"C++ compiled by {compiler}"


def _compiled_lookup(
    library: ctypes.CDLL, content: mmap.mmap, header: Header
) -> tuple[int, Fill]:
    """Where the dictionary ends, and look-up by `fasttext.cpp`."""
    numbers = np.frombuffer(content, np.uint8)
    begins = np.empty(header.entries, np.int64)
    # A power of two, of which under half are taken: then searches are short.
    table_size = 1 << (2 * header.entries).bit_length()
    slots = np.zeros((table_size, 2), np.uint32)
    file = _File(
        content=numbers.ctypes.data,
        length=len(content),
        dim=header.dim,
        words=header.words,
        bucket=header.bucket,
        shortest=header.shortest,
        longest=header.maxn,
        entries=header.entries,
        begins=begins.ctypes.data,
        slots=slots.ctypes.data,
        mask=table_size - 1,
    )
    # The structure has their addresses only.
    file.kept = (numbers, begins, slots)
    if not library.read_dictionary(ctypes.byref(file), DICTIONARY):
        raise ValueError(BAD_DICTIONARY)

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        text = b"<" + b"><".join(words) + b">"
        # Two marks a word.
        lengths = np.array([len(word) + 2 for word in words], dtype=np.int64)
        ends = np.cumsum(lengths)
        library.add_vectors(
            ctypes.byref(file), text, ends.ctypes.data, len(words), vectors.ctypes.data
        )

    return file.end, fill


def _python_lookup(content: mmap.mmap, header: Header) -> tuple[int, Fill]:
    """The same in Python, word by word."""
    entries, end = read_dictionary(content, header)
    # Where a word is there twice, its last number counts.
    numbers = {word: number for number, (word, _) in enumerate(entries)}
    ngrams = NgramKind(max(1, header.bucket), header.shortest, header.maxn)

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        matrix = input_rows(content, header, end)
        for start in range(0, len(words), _MOST_WORDS):
            block = words[start : start + _MOST_WORDS]
            decoded = [word.decode("utf-8", "surrogatepass") for word in block]
            owners, buckets = ngrams.of_words(decoded)
            bounds = np.searchsorted(owners, np.arange(len(block) + 1))
            for index, word in enumerate(block):
                own = numbers.get(word, -1)
                rows = [own] if own >= 0 else []
                # The library gives the end of a sentence no n-grams.
                if word != b"</s>":
                    places = buckets[bounds[index] : bounds[index + 1]]
                    rows += (header.words + places).tolist()
                is_label = own >= header.words
                if not rows or is_label:
                    continue
                vector = vectors[start + index]
                for row in rows:
                    vector += matrix[row]
                vector *= np.float32(1.0 / len(rows))

    return end, fill
