"""Feature reader: how the sentences of a feature file, mapped into memory, are found
and read.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import msgspec
import numpy as np

from elmoc.errors import reading, shortened
from elmoc.features.layouts import FORMAT_VERSION, LayoutReader
from elmoc.features.layouts.choose import choose_layout
from elmoc.features.layouts.e2e_coref import group_name
from elmoc.files.arrays import all_finite
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.limits import MOST_SENTENCES

# Bytes of the layer states of one word at most: they are allocated for every word that
# is read, whatever a file says.
MOST_WORD_BYTES = 1 << 24
# Attributes of the root that say how the file is read, beside those that say what it
# was made from.
FORM_ATTRIBUTES = ("layout", "format_version", "single")


@dataclass(frozen=True)
class FeatureRecord:
    """The attributes of a feature file that are read here; files of other tools have
    none of them.

    layout: the form on disk, one of `LAYOUTS`.
    format_version: of the layout.
    single: whether its arrays are [n, 2P], without an axis of layers.
    boundaries: whether sentences have the states of `<s>` and `</s>`, too.
    layers: names of the layers.
    dump: names everything that the content depends on.
    """

    layout: str | None = None
    format_version: int = FORMAT_VERSION
    single: bool = False
    boundaries: bool = False
    layers: list[str | int] = field(default_factory=list)
    dump: str | None = None


class FeatureFile:
    """Reads a feature file of any layout: `file[i]` is line i's array,
    `file.find(words)` the index of a sentence.

    Can be used as a context manager. It is pickled as its path, and a process that is
    forked opens it again when it first reads from it: HDF5's library does not share an
    open file. Raises `InputError` for a missing, truncated or foreign file, and when a
    sentence is read that is damaged or has another shape than the file says.

    path: the file.
    record: the attributes that say how it is read.
    attributes: the others, which say what it was made from: the fingerprints of the
        model and of its word vectors, the layers, …
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
        reader = self._open()
        first = reader.first
        self.layers = reader.layers
        self.width = reader.width
        self.has_map = reader.has_map
        self.dtype: np.dtype = first.dtype
        is_one = self.record.single and self.layers == 1
        self.single = len(first.shape) == 2 or is_one

    def _open(self) -> LayoutReader:
        # Mapped into memory: pages that several processes read are there once.
        self._file = CheckedFile(self.path)
        self._process = os.getpid()
        with reading(self.path):
            attributes = self._file.attributes()
            self.record = FeatureRecord()
            if "layout" in attributes:
                # NumPy's numbers and arrays as Python's.
                plain = {
                    name: np.asarray(value).tolist()
                    for name, value in attributes.items()
                }
                self.record = msgspec.convert(plain, FeatureRecord)
            version = self.record.format_version
            layout = choose_layout(self._file, self.record.layout, version)
            reader = layout.reader(self._file, attributes)
            if reader.first.dtype.kind != "f":
                raise ValueError(
                    f"its numbers are {reader.first.dtype}, which are no layer states"
                )
            word_bytes = reader.layers * reader.width * 8
            if len(reader) > MOST_SENTENCES or word_bytes > MOST_WORD_BYTES:
                raise ValueError(
                    f"{len(reader):,} sentences of {reader.layers:,} layers of "
                    f"{reader.width:,} are too many"
                )
        for name in FORM_ATTRIBUTES:
            attributes.pop(name, None)
        self.attributes = attributes
        self.layout = layout.layout
        self._opened = reader
        return reader

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

    def __contains__(self, words: object) -> bool:
        """Whether there is a sentence with these words: a list of them, or text with
        white space between them.
        """
        return self.find(words) is not None  # type: ignore[arg-type]

    @overload
    def __getitem__(self, index: int | Sequence[str]) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...
    def __getitem__(
        self, index: int | slice | Sequence[str]
    ) -> np.ndarray | list[np.ndarray]:
        """[L + 1, n, 2P], or [n, 2P] of the top layer or the average, in the type that
        the file holds.

        Args:
            index: of the sentence (from the end, if it is negative), or its words (a
                list of them, or text with white space between them). A slice is the
                list of its sentences.

        Raises:
            KeyError: there is no sentence with these words.
            InputError: the sentence has another number of layers or width than the file
                says, or numbers that are not finite.
        """
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
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
            lines = self._reader.lines()
        return {" ".join(line.split()): index for line, index in lines.items()}

    @property
    def layer_names(self) -> list[str]:
        """The names of its layers; in a file that does not say, their numbers."""
        names: Sequence[str | int] = self.record.layers
        if len(names) != self.layers:
            names = range(self.layers)
        return [str(name) for name in names]

    @property
    def compression(self) -> str | None:
        """How the numbers are packed, e.g. `gzip`; None where they are not."""
        return getattr(self._reader.first, "compression", None)

    @cached_property
    def documents(self) -> dict[str, range]:
        """The indices of the sentences of each document, by its key; empty in a file
        that tells no documents apart.
        """
        with reading(self.path):
            return self._reader.documents()

    def document(self, key: str) -> list[np.ndarray]:
        """The arrays of the sentences of a document.

        Args:
            key: of the document; a `/` in it may also be `:`, as it is in the e2e-coref
                layout.

        Raises:
            KeyError: there is no document of that key.
        """
        name = key if key in self.documents else group_name(key)
        return [self[index] for index in self.documents[name]]

    @cached_property
    def lengths(self) -> np.ndarray:
        """int64 [sentences]: the number of words of each; the numbers of the sentences
        are not read.
        """
        with reading(self.path):
            words = map(self._reader.words, range(len(self)))
            return np.fromiter(words, np.int64, len(self))

    @property
    def tokens(self) -> int:
        """The number of words of all sentences together."""
        return int(self.lengths.sum())

    def check(self, progress: Callable[[int], object] = lambda sentences: None) -> None:
        """Read all of the file.

        Args:
            progress: called after each sentence with the number 1.

        Raises:
            InputError: a sentence is damaged or unlike its map; it is named.
        """
        for index in range(len(self)):
            self._require_sound(index, self.view(index))
            progress(1)
        if not self.has_map:
            return
        # `<s>` and `</s>` are no words of the map.
        more = 2 if self.record.boundaries else 0
        with reading(self.path):
            for text, index in self.sentence_map.items():
                if len(text.split()) + more != self.lengths[index]:
                    raise ValueError(
                        f'sentence {index} is not "{shortened(text)}", as its map says'
                    )

    def close(self) -> None:
        """Close the file; views of it stay good, and nothing else is read from it."""
        self._file.file.close()

    def __enter__(self) -> "FeatureFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _require_sound(self, index: int, array: np.ndarray) -> None:
        """Raise an `InputError` for a sentence that is unlike the first, or damaged."""
        layers = len(array) if array.ndim == 3 else 1
        is_alike = (
            array.ndim in (2, 3)
            and layers == self.layers
            and array.shape[-1] == self.width
            and array.dtype.kind == "f"
        )
        with reading(self.path):
            if not is_alike:
                raise ValueError(
                    f"sentence {index} is {array.dtype} {array.shape}, unlike the first"
                )
            if not all_finite(array):
                raise ValueError(f"sentence {index} has numbers that are not finite")
