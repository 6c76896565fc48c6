"""FastText vectors: word vectors of a `.bin` file, read from a memory map.

Files that the library has quantised are read by the library itself: theirs are small, as that is what they are made
for, and their rows have to be decoded.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from elmoc.errors import InputError, reason, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import absolute_path
from elmoc.word_vectors.fasttext.index import open_indexed
from elmoc.word_vectors.fasttext.lookup import choose_lookup


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character n-grams.

    Raises `InputError` when the file is missing, truncated, damaged or something else.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = absolute_path(path)
        file, index = open_indexed(path)
        self.size = file.header.dim
        self._lookup = LibraryLookup(path) if index is None else choose_lookup(file, index)

    def __reduce__(self) -> tuple[type["FastTextVectors"], tuple[str]]:
        return FastTextVectors, (self.origin,)  # another process maps the file, too, and shares its memory

    @property
    def description(self) -> str:
        """Of what looks words up."""
        return self._lookup.description

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: fastText's vector of each string; a label of the file gets zeros."""
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        if len(words):
            self._lookup.fill(_encoded(words), vectors)
        if not all_finite(vectors):
            word = words[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
            raise InputError(
                f"{self.origin}: the vector of {shortened(word)!r} has numbers that are not finite: download or train "
                "it again"
            )
        return vectors


def _encoded(words: Sequence[str]) -> list[bytes]:
    try:
        return [word.encode() for word in words]
    except UnicodeEncodeError as error:
        word = shortened(error.object)
        raise InputError(
            f"{word!r} has no word vector, since it cannot be written as UTF-8 (near character {error.start + 1}): "
            "correct the text"
        ) from None


class LibraryLookup:
    """`Lookup` by the library, which reads the whole file into memory."""

    description = "the fastText library"

    def __init__(self, path: Path | str) -> None:
        import fasttext

        try:
            self._model = fasttext.load_model(os.path.realpath(path))
        except (ValueError, MemoryError) as error:
            raise InputError(
                f"{path} cannot be loaded by fastText ({reason(error)}): give another, or more memory"
            ) from None
        labels, _ = self._model.f.getLabels("surrogateescape")
        self._labels = {label.encode("utf-8", "surrogateescape") for label in labels}
        """They are no words, and fastText takes the row of some other string for theirs, or one that is not there."""

    def fill(self, words: Sequence[bytes], vectors: np.ndarray) -> None:
        for row, word in enumerate(words):
            if word not in self._labels:
                vectors[row] = self._model.get_word_vector(word)
