"""Feature reader: the sentences of a feature file, mapped into memory and read when they are used."""

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.features.layouts import FORM_ATTRIBUTES, LAYOUTS, layout_of
from elmoc.files.arrays import all_finite
from elmoc.files.hdf5 import CheckedFile

_ADVICE = "write it again with `elmoc dump-features`"


class FeatureFile:
    """Reads a feature file: `file[i]` is line i's array, `file.find(words)` the index of a sentence.

    Can be used as a context manager; several processes may read one file. Raises `InputError` for a missing, truncated
    or foreign file, and when a sentence is read that is damaged or has another shape than the first.
    """

    dtype: np.dtype
    """The type of its numbers."""
    layers: int
    """How many layers each sentence has (1 for a file of the top or average layer)."""
    width: int
    """The width of the vectors, 2P."""

    attributes: dict[str, Any]
    """What it says of the model and the command that it is from."""
    layout: str
    """The form in which it is on disk, one of `LAYOUTS`."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._file = CheckedFile(path, advice=_ADVICE)
        weakref.finalize(self, self._file.close)  # the library would read at the end of the process, through Python
        attributes = self._file.attributes()
        self.attributes = {name: value for name, value in attributes.items() if name not in FORM_ATTRIBUTES}
        with self._file.damage("cannot be read"):
            self.layout = layout_of(self._file, attributes)
            self._layout = LAYOUTS[self.layout].reader(self._file, attributes)
            self.layers, self.width, first = self._layout.layers, self._layout.width, self._layout.first
            self.dtype, self._type = first.dtype, h5py.h5t.py_create(first.dtype)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._layout)

    def __getitem__(self, index: int) -> np.ndarray:
        """[L + 1, n, 2P], or [n, 2P] when the file holds one layer, in the type that the file holds.

        One of another number of layers or width than the first, and numbers that are not finite, are an `InputError`.
        """
        array = np.array(self.view(index), order="C")
        self._require_sound(index, array)
        return array

    def view(self, index: int) -> np.ndarray:
        """The same without a copy, read-only: a part of the file itself, mapped into memory.

        It is read when it is used, into memory that all processes share (the system's page cache), and stays good when
        the `FeatureFile` is closed. Its shape and numbers are whatever the file has. Of datasets in chunks (foreign
        files, compressed ones) it is a copy.
        """
        if not 0 <= index < len(self._layout):
            raise IndexError(f"sentence {index} of {len(self._layout)}")
        with self._file.damage(f"has a sentence {index} that cannot be read"):
            array = self._layout.view(index, self._rows)
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise InputError(f"{self.path}: sentence {index} has no floating-point numbers: {_ADVICE}")
        return array

    def _require_sound(self, index: int, array: np.ndarray) -> None:
        layers, *rest = array.shape if array.ndim == 3 else (1, *array.shape)
        if (layers, len(rest), rest[-1:]) != (self.layers, 2, [self.width]):
            shape = " × ".join(map(str, array.shape))
            raise InputError(
                f"{self.path}: sentence {index} has the shape {shape}, not {self.layers} layers of width {self.width}: "
                f"{_ADVICE}"
            )
        if not all_finite(array):
            raise InputError(f"{self.path}: sentence {index} has numbers that are not finite: {_ADVICE}")

    def _rows(self, name: str, start: int | None = None, stop: int | None = None) -> np.ndarray:
        dataset = self._file.dataset(name)
        offset = dataset.get_offset()  # None when the data are in chunks, or there are none
        if offset is None or not dataset.get_type().equal(self._type) or offset % self.dtype.alignment:
            return h5py.Dataset(dataset)[() if stop is None else slice(start, stop)]
        array = np.ndarray(dataset.shape, self.dtype, buffer=self._file.content, offset=offset)
        return array if stop is None else array[start:stop]

    def check(self, progress: Callable[[int], object] = lambda sentences: None) -> None:
        """Read all of the file, and raise `InputError` for the first sentence that is damaged or not that of the map.

        `progress` is called after each sentence with the number 1.
        """
        lengths = []
        for index in range(len(self)):
            array = self.view(index)
            self._require_sound(index, array)
            lengths.append(array.shape[-2])
            progress(1)
        if not self._layout.has_map:
            return
        for text, index in self._sentences.items():
            words = len(text.split())
            if words != lengths[index]:
                raise InputError(
                    f'{self.path}: its map says that sentence {index} is "{shortened(text)}", of {words} words, but it '
                    f"has {lengths[index]}: {_ADVICE}"
                )

    def find(self, words: Sequence[str]) -> int | None:
        """The index of the sentence with these words, or None; the file needs its sentence map."""
        return self._sentences.get(" ".join(words))

    @cached_property
    def _sentences(self) -> dict[str, int]:
        return self._layout.sentence_map()

    def close(self) -> None:
        """Close the file; views of it stay good."""
        self._file.close()

    def __enter__(self) -> "FeatureFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
