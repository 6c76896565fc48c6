"""Feature reader: how the sentences of a feature file, mapped into memory, are found
and read.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elmoc.errors import InputError, reading, shortened
from elmoc.features.layouts import (
    FORMAT_VERSION,
    FeatureRecord,
    LayoutReader,
    LayoutWriter,
)
from elmoc.features.layouts.allennlp import AllennlpWriter, BilmWriter, is_group
from elmoc.features.layouts.e2e_coref import E2eCorefWriter
from elmoc.features.layouts.flat import OFFSETS, STATES, FlatWriter
from elmoc.features.options import MOST_SENTENCES
from elmoc.files.arrays import all_finite
from elmoc.files.hdf5 import CheckedFile
from elmoc.process import progress_bar

# Bytes of the layer states of one word at most: they are allocated for every word that
# is read, whatever a file says.
MOST_WORD_BYTES = 1 << 24


# By the names of `LayoutName`; each writer has its reader.
LAYOUTS: dict[str, type[LayoutWriter]] = {
    writer.layout: writer
    for writer in (AllennlpWriter, BilmWriter, E2eCorefWriter, FlatWriter)
}


class FeatureFile(AbstractContextManager["FeatureFile"]):
    """Reads a feature file of any layout: `file[i]` is line i's array,
    `file.find(words)` the index of a sentence.

    Can be used as a context manager. It is pickled as its path, and a process that is
    forked opens it again when it first reads from it: HDF5's library does not share an
    open file. Raises `InputError` for a missing, truncated or foreign file, and when a
    sentence is read that is damaged or has another shape than the file says.

    path: the file.
    record: the attributes that are read here.
    attributes: all but the layout, its version and `single`: what it was made from, the
        fingerprints of the model and of its word vectors, the layers, …
    layout: the form in which it is on disk, one of `LAYOUTS`.
    dtype: the type of its numbers.
    layers: the number of layers of each sentence (1 for a file of the top or average
        layer).
    width: the width of the vectors, 2P.
    single: whether its arrays are [n, 2P], without an axis of layers.
    has_map: whether sentences can be found by their words.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._open()

    def _open(self) -> None:
        # Mapped into memory: pages that several processes read are there once.
        self._file = CheckedFile(self.path)
        self._process = os.getpid()
        with reading(self.path):
            attributes = self._file.attributes()
            # Attributes of other tools say nothing here.
            own = attributes if "layout" in attributes else {}
            self.record = msgspec.convert(own, FeatureRecord)
            layout = _choose_layout(self._file, self.record)
            reader = layout.reader(self._file, attributes)
            self.dtype: np.dtype = reader.first.dtype
            if self.dtype.kind != "f":
                raise ValueError(
                    f"its numbers are {self.dtype}, which are no layer states"
                )
            # As if all were float64, of which none is larger.
            word_bytes = reader.layers * reader.width * 8
            if len(reader) > MOST_SENTENCES or word_bytes > MOST_WORD_BYTES:
                raise ValueError(
                    f"{len(reader):,} sentences of {reader.layers:,} layers of "
                    f"{reader.width:,} are too many"
                )
        self.attributes = {
            name: value
            for name, value in attributes.items()
            if name not in ("layout", "format_version", "single")
        }
        self.layout = layout.layout
        self.layers = reader.layers
        self.width = reader.width
        self.has_map = reader.has_map
        has_one = self.record.single and self.layers == 1
        self.single = has_one or len(reader.first.shape) == 2
        self._opened = reader

    @property
    def _reader(self) -> LayoutReader:
        """The reader of the file as this process has opened it."""
        # Two processes must not share what HDF5's library keeps of an open file.
        if self._process != os.getpid() and self._file.file:
            # Closed in this process alone.
            self._file.file.close()
            self._open()
        return self._opened

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureFile, (self.path.absolute(),)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._reader)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int | Sequence[str]) -> np.ndarray:
        """[L + 1, n, 2P], or [n, 2P] of the top layer or the average, in the type that
        the file holds.

        Args:
            index: of the sentence (from the end, if it is negative), or its words (a
                list of them, or text with white space between them).

        Raises:
            KeyError: there is no sentence with these words.
            InputError: the sentence has another number of layers or width than the file
                says, or numbers that are not finite.
        """
        if isinstance(index, Sequence):
            found = self.find(index)
            if found is None:
                raise KeyError(index)
            index = found
        # A copy: what a caller changes must not be the file's own memory.
        array = np.array(self.view(index), order="C")
        self._require_sound(index, array)
        return array

    def view(self, index: int) -> np.ndarray:
        """The same without a copy, read-only: a part of the file itself, mapped into
        memory.

        It is read when it is used, into memory that all processes share (the system's
        page cache), and stays good when the `FeatureFile` is closed. Its shape and
        numbers are not checked. Of datasets in chunks (foreign files, compressed ones)
        it is a copy.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        with reading(self.path):
            array = self._reader.view(index % len(self))
        return array[0] if self.single and array.ndim == 3 else array

    def find(self, words: Sequence[str]) -> int | None:
        """The index of the sentence with these words (a list of them, or text with
        white space between them), or None.

        Raises:
            InputError: the file has no sentence map.
        """
        tokens = words.split() if isinstance(words, str) else words
        return self.sentence_map.get(" ".join(tokens))

    @cached_property
    def sentence_map(self) -> dict[str, int]:
        """The index of each sentence by its words with a blank between them; of equal
        sentences it is the last.
        """
        with reading(self.path):
            return {
                " ".join(line.split()): index
                for line, index in self._reader.lines().items()
            }

    @property
    def layer_names(self) -> list[str]:
        """The names of its layers; in a file that does not say, their numbers."""
        has_names = len(self.record.layers) == self.layers
        return list(map(str, self.record.layers if has_names else range(self.layers)))

    @cached_property
    def lengths(self) -> np.ndarray:
        """int64 [sentences]: the number of words of each."""
        views = map(self.view, range(len(self)))
        return np.array([view.shape[-2] for view in views], dtype=np.int64)

    def check(self) -> None:
        """Read all of the file, with a bar where that takes long.

        Raises:
            InputError: a sentence is damaged or unlike its map; it is named.
        """
        for index in progress_bar(
            iterable=range(len(self)), desc="  check", delay=2, leave=False
        ):
            self._require_sound(index, self.view(index))
        for text, index in self.sentence_map.items() if self.has_map else ():
            # `<s>` and `</s>` are no words of the map.
            words = self.view(index).shape[-2] - 2 * self.record.boundaries
            if len(text.split()) != words:
                raise InputError(
                    f"{self.path} cannot be read: sentence {index} is not "
                    f'"{shortened(text)}", as its map says'
                )

    def close(self) -> None:
        """Close the file; views of it stay good, and nothing else is read from it."""
        self._file.file.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_sound(self, index: int, array: np.ndarray) -> None:
        """Raise an `InputError` for a sentence that is unlike the first, or damaged."""
        shape = array.shape if array.ndim == 3 else (1, *array.shape)
        is_alike = len(shape) == 3 and shape[::2] == (self.layers, self.width)
        with reading(self.path):
            if not is_alike or array.dtype.kind != "f":
                raise ValueError(
                    f"sentence {index} is {array.dtype} {array.shape}, unlike the first"
                )
            if not all_finite(array):
                raise ValueError(f"sentence {index} has numbers that are not finite")


def _choose_layout(file: CheckedFile, record: FeatureRecord) -> type[LayoutWriter]:
    """The layout of a file, as it says itself; that of a file of another tool is known
    by its members.

    Raises:
        InputError: the layout or its version is not known here.
    """
    name = record.layout or _foreign_layout(file)
    if name not in LAYOUTS or record.format_version != FORMAT_VERSION:
        raise InputError(
            f"it has the layout {shortened(name)} in version {record.format_version}, "
            f"this elmoc reads {', '.join(LAYOUTS)} in version {FORMAT_VERSION}: use "
            "the elmoc that wrote it"
        )
    return LAYOUTS[name]


def _foreign_layout(file: CheckedFile) -> str:
    if STATES in file and OFFSETS in file:
        return "flat"
    # Lazily: a file of sentences is known by its first member.
    are_documents = (
        is_group(file, name) and f"{name}/0" in file for name in file.names()
    )
    return "e2e-coref" if all(are_documents) else "allennlp"
