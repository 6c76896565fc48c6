"""Look-up of fastText vectors: how words go to `lookup.cpp`, or to NumPy where nothing can be compiled."""

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from elmoc.kernels.compiling import KernelBuildError, default_compiler, load_library
from elmoc.word_vectors.fasttext.file import FastTextFile
from elmoc.word_vectors.fasttext.index import DictionaryIndex
from elmoc.word_vectors.fasttext.subwords import add_vectors

SOURCE = Path(__file__).with_suffix(".cpp")
_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64
END_OF_SENTENCE = b"</s>"
"""It has no n-grams."""


class Lookup(Protocol):
    """Vectors of words, equal to the library's bit for bit."""

    description: str

    def fill(self, words: Sequence[bytes], vectors: np.ndarray) -> None:
        """Add the vectors of words (UTF-8) to `vectors`, float32 [n, E], which are zeros; a label keeps these."""


class _File(ctypes.Structure):
    """The struct of that name in the C++ file."""

    _fields_ = (
        ("content", _POINTER),
        ("dictionary_end", _LONG),
        ("matrix", _POINTER),
        *((name, _LONG) for name in ("dim", "words", "bucket", "shortest", "longest")),
        *((name, _POINTER) for name in ("hashes", "entries", "offsets")),
        ("count", _LONG),
    )


class CompiledLookup:
    """`Lookup` in C++; raises `KernelBuildError` where there is no compiler that can."""

    def __init__(self, file: FastTextFile, index: DictionaryIndex) -> None:
        self._add_vectors, self.description = _load(default_compiler())
        content = np.frombuffer(file.content, np.uint8)
        self._kept = (content, index)  # the structure names their memory
        header = file.header
        self._file = _File(
            content.ctypes.data,
            file.dictionary_end,
            content.ctypes.data + file.input_start,
            *(header.dim, header.words, header.bucket, header.shortest, header.maxn),
            *(array.ctypes.data for array in (index.hashes, index.numbers, index.offsets)),
            len(index.hashes),
        )

    def fill(self, words: Sequence[bytes], vectors: np.ndarray) -> None:
        text, ends = _joined(words)
        self._add_vectors(ctypes.byref(self._file), text, ends.ctypes.data, len(words), vectors.ctypes.data)


class NumpyLookup:
    """`Lookup` in NumPy."""

    description = "NumPy"

    def __init__(self, file: FastTextFile, index: DictionaryIndex) -> None:
        self._file, self._index = file, index

    def fill(self, words: Sequence[bytes], vectors: np.ndarray) -> None:
        text, ends = _joined(words)
        begins = np.append(0, ends[:-1]) + 1
        found = self._index.find(self._file, text, begins, ends - 1)
        labels = found >= self._file.header.words
        divided = ~labels & np.array([word != END_OF_SENTENCE for word in words], dtype=bool)
        add_vectors(self._file, text, ends, np.where(labels, -1, found), divided, vectors)


def choose_lookup(file: FastTextFile, index: DictionaryIndex) -> Lookup:
    """The fastest that this machine has."""
    try:
        return CompiledLookup(file, index)
    except KernelBuildError as error:
        lookup = NumpyLookup(file, index)
        lookup.description = f"NumPy: {error}"
        return lookup


@lru_cache
def _load(compiler: str) -> tuple[Callable[..., None], str]:
    library, found = load_library(SOURCE, compiler)
    function = library.add_vectors
    function.restype, function.argtypes = None, [_POINTER, ctypes.c_char_p, _POINTER, _LONG, _POINTER]
    return function, f"C++ compiled by {found}"


def _joined(words: Sequence[bytes]) -> tuple[bytes, np.ndarray]:
    """Words one behind another, each between `<` and `>`, and where each ends, int64 [n]."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    return b"<" + b"><".join(words) + b">", np.cumsum(lengths + 2)
