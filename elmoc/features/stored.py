"""Stored sentences: how those of one HDF5 file, in one layout, become views of it, each looked for once."""

import mmap
import weakref
from pathlib import Path
from typing import NoReturn

import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts import FORM_ATTRIBUTES, LAYOUTS, LayoutReader, Member, layout_of
from elmoc.files.hdf5 import CheckedFile

ADVICE = "write it again with `elmoc dump-features`"
PARTS, PART_SENTENCES = "parts", "part_sentences"
"""Attributes of a file that links to parts: their names, relative to its folder, and the sentences of each."""
STORAGE = frozenset((PARTS, PART_SENTENCES, *FORM_ATTRIBUTES))
"""Attributes that say how a file is read; the others say what its numbers are."""
_MOST_WORDS = np.iinfo(np.int32).max


def open_stored(path: Path | str, *, advice: str = ADVICE) -> "StoredSentences":
    """Open a feature file that holds all of its sentences; the `advice` is what errors say that is to be done."""
    return StoredSentences(CheckedFile(path, advice=advice))


class StoredSentences:
    """The sentences of an HDF5 file that holds all of them; raises `InputError` for what is damaged or foreign."""

    def __init__(self, file: CheckedFile) -> None:
        weakref.finalize(self, file.close)  # the library would read at the end of the process, through Python
        self.path, self.file, self.attributes = Path(file.path), file, file.attributes()
        with file.damage("cannot be read"):
            self.layout = layout_of(file, self.attributes)
            self.reader: LayoutReader = LAYOUTS[self.layout].reader(file, self.attributes)
            self.layers, self.width = self.reader.layers, self.reader.width
            self.dtype: np.dtype = self.reader.first.dtype
            self._length = len(self.reader)
            self.has_map = self.reader.has_map
        self._places = _Places(file.content, self._length)

    def __len__(self) -> int:
        return self._length

    def view(self, index: int) -> np.ndarray:
        """The array of a sentence: a part of the file mapped into memory, or a copy where it is in chunks.

        Its shape and numbers are whatever the file has.
        """
        if (array := self._places.view(index)) is not None:
            return array
        with self.file.damage(f"has a sentence {index} that cannot be read"):
            array = self.reader.view(index, self.file.rows)
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise InputError(f"{self.path}: sentence {index} has no floating-point numbers: {ADVICE}")
        self._places.remember(index, array)
        return array

    def where(self, index: int) -> str:
        """What errors call a sentence."""
        return f"{self.path}: sentence {index}"

    def words(self, index: int) -> int:
        """The number of words of a sentence; its numbers are not read."""
        with self.file.damage(f"has a sentence {index} that cannot be read"):
            return self._places.words(index) or self.reader.words(index)

    def sentence_map(self) -> dict[str, int]:
        """The index of each sentence by its words with a blank between them; an `InputError` where it has no map."""
        return {" ".join(line.split()): index for line, index in self.lines().items()}

    def documents(self) -> dict[str, range] | None:
        """The sentences of each document by its key; None in a file that does not tell documents apart."""
        with self.file.damage("has documents that cannot be read"):
            return self.reader.documents()

    def lines(self) -> dict[str, int]:
        """The index of each sentence by its text; an `InputError` where the file has no map."""
        return self.reader.lines()

    @property
    def member(self) -> Member:
        """What lies in the root of the file."""
        return LAYOUTS[self.layout].member

    @property
    def files(self) -> list[Path]:
        """The file."""
        return [self.path]

    @property
    def compression(self) -> str | None:
        """How the numbers are packed, e.g. `gzip`; None where they are not."""
        return self.reader.first.compression

    def check_links(self) -> None:
        """There are none."""

    def close(self) -> None:
        """Close the file; views of it stay good."""
        self.file.close()


class ClosedSentences:
    """The sentences of a file that has been closed: how many they were; to ask for more is an `InputError`."""

    def __init__(self, path: Path, files: list[Path], length: int) -> None:
        self.path, self.files, self._length = path, files, length

    def __len__(self) -> int:
        return self._length

    def __getattr__(self, name: str) -> NoReturn:
        raise InputError(f"{self.path} has been closed: open it again, or read it before it is closed")

    def close(self) -> None:
        """It is closed."""


class _Places:
    """Where the sentences are that have been looked at, so that each is found in about 1 µs the next time.

    Looking at one for the first time takes dozens of µs: the library finds it, and its storage is checked. A place
    takes 12 bytes.
    """

    def __init__(self, content: mmap.mmap, sentences: int) -> None:
        self._content = content
        self._start = _address(np.frombuffer(content, np.uint8))
        self._offsets = np.zeros(sentences, np.int64)
        """In the file; 0 where it is not known."""
        self._words = np.zeros(sentences, np.int32)
        self._kind: tuple[tuple[int, ...], int, np.dtype] | None = None
        """What the arrays have in common: the axes before words, the width, the type."""

    def view(self, index: int) -> np.ndarray | None:
        """The array of a sentence, where its place is known."""
        offset = int(self._offsets[index])
        if not offset or self._kind is None:
            return None
        layers, width, dtype = self._kind
        return np.ndarray((*layers, int(self._words[index]), width), dtype, self._content, offset)

    def words(self, index: int) -> int:
        """The number of words of a sentence whose place is known, else 0."""
        return int(self._words[index])

    def remember(self, index: int, array: np.ndarray) -> None:
        """Keep the place of a sentence whose array is a part of the file, and differs from the first in words alone."""
        offset, end = _address(array) - self._start, len(self._content)
        if array.ndim < 2 or not array.flags.c_contiguous or not 0 < offset <= end - array.nbytes:
            return
        kind = array.shape[:-2], array.shape[-1], array.dtype
        self._kind = self._kind or kind
        if kind == self._kind and 0 < array.shape[-2] <= _MOST_WORDS:
            self._words[index] = array.shape[-2]
            self._offsets[index] = offset  # last, for threads that look at it meanwhile


def _address(array: np.ndarray) -> int:
    """Where in memory the numbers of an array begin."""
    return int(array.__array_interface__["data"][0])
