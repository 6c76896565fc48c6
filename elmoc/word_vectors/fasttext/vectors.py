"""FastText vectors: word vectors of a `.bin` file, read from a memory map.

Words are looked up by `lookup.cpp`, which is compiled on the user's machine. Where there is no compiler, the library
does it: it reads the whole file into memory.
"""

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError, reading, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import absolute_path
from elmoc.kernels.compiling import KernelBuildError, default_compiler, load_library
from elmoc.word_vectors.fasttext.file import FastTextFile, open_file
from elmoc.word_vectors.fasttext.index import open_indexed

_SOURCE = Path(__file__).with_name("lookup.cpp")
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64

# Adds the vectors of words (UTF-8) to float32 [n, E] of zeros; a label keeps these.
Fill = Callable[[Sequence[bytes], np.ndarray], None]


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character n-grams.

    Vectors are equal to the library's bit for bit.

    description: what looks words up.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = absolute_path(path)
        try:
            library, self.description = _compiled(default_compiler())
        except KernelBuildError:
            self.description = "the fastText library"
            self.size, self._fill = _library_lookup(path)
        else:
            self.size, self._fill = _compiled_lookup(library, path)

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


class _File(ctypes.Structure):  # as in lookup.cpp
    _fields_ = (
        ("content", _POINTER),
        ("dictionary_end", _LONG),
        ("matrix", _POINTER),
        *((name, _LONG) for name in ("dim", "words", "bucket", "shortest", "longest")),
        ("entries", _POINTER),
        ("count", _LONG),
    )


@lru_cache
def _compiled(compiler: str) -> tuple[ctypes.CDLL, str]:
    library, compiler = load_library(_SOURCE, compiler)
    library.hash_entries.restype = library.add_vectors.restype = None
    library.hash_entries.argtypes = [_POINTER, _POINTER, _POINTER, _LONG, _POINTER]
    library.add_vectors.argtypes = [_POINTER, ctypes.c_char_p, _POINTER, _LONG, _POINTER]
    return library, f"C++ compiled by {compiler}"


def _compiled_lookup(library: ctypes.CDLL, path: Path | str) -> tuple[int, Fill]:
    """E, and look-up by `lookup.cpp` in a memory map."""

    def hash_entries(file: FastTextFile, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        places, hashes = np.frombuffer(file.content, np.uint8), np.empty(len(begins), np.uint32)
        addresses = [each.ctypes.data for each in (places, begins, ends)]
        library.hash_entries(*addresses, len(begins), hashes.ctypes.data)
        return hashes

    file, index = open_indexed(path, hash_entries)
    content, header = np.frombuffer(file.content, np.uint8), file.header
    structure = _File(
        content.ctypes.data,
        file.dictionary_end,
        content.ctypes.data + file.input_start,
        *(header.dim, header.words, header.bucket, header.shortest, header.maxn),
        index.ctypes.data,
        len(index),
    )
    structure.kept = content, index  # it names their memory

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        ends = np.cumsum(np.fromiter(map(len, words), np.int64, len(words)) + 2)
        text = b"<" + b"><".join(words) + b">"
        library.add_vectors(ctypes.byref(structure), text, ends.ctypes.data, len(words), vectors.ctypes.data)

    return header.dim, fill


def _library_lookup(path: Path | str) -> tuple[int, Fill]:
    """E, and look-up by the library, which reads the whole file into memory."""
    import fasttext

    size = open_file(path).header.dim
    with reading(path):
        model: Any = fasttext.load_model(os.path.realpath(path))
    labels, _ = model.f.getLabels("surrogateescape")
    # Labels are no words: fastText would take the row of some other string for them, or read outside the matrix.
    known = {label.encode("utf-8", "surrogateescape") for label in labels}

    def fill(words: Sequence[bytes], vectors: np.ndarray) -> None:
        for row, word in enumerate(words):
            if word not in known:
                vectors[row] = model.get_word_vector(word)

    return size, fill
