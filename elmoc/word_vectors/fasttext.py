"""FastText vectors: word vectors of a `.bin` file, which is mapped into memory.

Words are looked up by `fasttext.cpp`, or in Python where it is not compiled.
"""

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from elmoc.errors import reading
from elmoc.files.checksums import fingerprint_file
from elmoc.kernels.loading import NoKernelsError, load_library
from elmoc.word_vectors.fasttext_file import (
    BAD_DICTIONARY,
    DICTIONARY,
    Header,
    check_matrices,
    input_rows,
    read_dictionary,
    read_header,
)
from elmoc.word_vectors.sources import finite

# Words whose n-grams are looked up at once in Python: their places take some MB.
_MOST_WORDS = 1024

# Adds the vectors of words (UTF-8) to float32 [n, E] of zeros; a label keeps these.
Fill = Callable[[Sequence[bytes], np.ndarray], None]


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character
    n-grams. Vectors are equal to the library's bit for bit.

    header: the sizes of the file.

    Raises:
        InputError: the file is missing, foreign, quantised, truncated or damaged.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = os.path.abspath(path)
        with reading(path), open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self.header = read_header(self._content)
            try:
                end, self._fill = _compiled_lookup(self._content, self.header)
            except NoKernelsError:
                end, self._fill = _python_lookup(self._content, self.header)
            check_matrices(self._content, self.header, end)
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
        # Half of a surrogate pair, too, which is no UTF-8, has a vector.
        self._fill([word.encode("utf-8", "surrogatepass") for word in words], vectors)
        return finite(vectors, words, self.origin)

    def contents(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """The words, most frequent first; int64 [V], how often each occurs; and
        float32 [buckets, E], the rows of n-grams, mapped.
        """
        entries, end = read_dictionary(self._content, self.header)
        counts = dict(entries[: self.header.words])
        words = [word.decode("utf-8", "replace") for word in counts]
        return (
            words,
            np.array(list(counts.values())),
            input_rows(self._content, self.header, end)[self.header.words :],
        )


@lru_cache
def _library() -> ctypes.CDLL:
    """The library of `fasttext.cpp`."""
    library = load_library("fasttext")
    library.read_dictionary.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.add_vectors.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_void_p,
    ]
    return library


def _compiled_lookup(content: mmap.mmap, header: Header) -> tuple[int, Fill]:
    """Where the dictionary ends, and look-up by `fasttext.cpp`."""
    library = _library()
    numbers = np.frombuffer(content, np.uint8)
    begins = np.empty(header.entries, np.int64)
    # A power of two, of which under half are taken: then searches are short.
    table_size = 1 << (2 * header.entries).bit_length()
    slots = np.zeros((table_size, 2), np.uint32)
    # `File` in fasttext.cpp, which writes the last field: the end of the dictionary.
    fields = {
        "content": numbers.ctypes.data,
        "length": len(content),
        "dim": header.dim,
        "words": header.words,
        "bucket": header.bucket,
        "shortest": header.ngrams.shortest,
        "longest": header.maxn,
        "entries": header.entries,
        "begins": begins.ctypes.data,
        "slots": slots.ctypes.data,
        "mask": table_size - 1,
        "end": 0,
    }
    file = np.array(list(fields.values()), dtype=np.int64)
    if not library.read_dictionary(file.ctypes.data, DICTIONARY):
        raise ValueError(BAD_DICTIONARY)
    # The library has their addresses only.
    kept = (file, numbers, begins, slots)

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        text = b"<" + b"><".join(words) + b">"
        # Two marks a word.
        ends = np.cumsum([len(word) + 2 for word in words], dtype=np.int64)
        library.add_vectors(
            kept[0].ctypes.data,
            text,
            ends.ctypes.data,
            len(words),
            vectors.ctypes.data,
        )

    return int(file[-1]), fill


def _python_lookup(content: mmap.mmap, header: Header) -> tuple[int, Fill]:
    """The same in Python, word by word."""
    entries, end = read_dictionary(content, header)
    # Where a word is there twice, its last number counts.
    numbers = {word: number for number, (word, _) in enumerate(entries)}

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        matrix = input_rows(content, header, end)
        for start in range(0, len(words), _MOST_WORDS):
            block = words[start : start + _MOST_WORDS]
            owners, buckets = header.ngrams.of_words(
                [word.decode("utf-8", "surrogatepass") for word in block]
            )
            of_words = np.split(
                header.words + buckets,
                np.searchsorted(owners, np.arange(1, len(block))),
            )
            for vector, word, rows in zip(
                vectors[start:], block, of_words, strict=False
            ):
                # The library gives the end of a sentence no n-grams.
                added = [] if word == b"</s>" else rows.tolist()
                if word in numbers:
                    added.insert(0, numbers[word])
                is_label = numbers.get(word, 0) >= header.words
                for row in [] if is_label else added:
                    vector += matrix[row]
                vector *= np.float32(1 / max(1, len(added)))

    return end, fill
