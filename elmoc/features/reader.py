"""Feature reader: the sentences of a feature file, mapped into memory and read when they are used."""

import mmap
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts import LAYOUTS


class FeatureFile:
    """Reads a feature file: `file[i]` is line i's array, `file.find(words)` the index of a sentence.

    Can be used as a context manager; several processes may read one file. Raises `InputError` for a missing, truncated
    or foreign file.
    """

    dtype: np.dtype
    """The type of its numbers."""
    layers: int
    """How many layers each sentence has (1 for a file of the top or average layer)."""
    width: int
    """The width of the vectors, 2P."""

    def __init__(self, path: Path | str, layout: str = "allennlp") -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"{path} does not exist: write it with `elmoc dump-features`")
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise InputError(
                f"{path} is not a whole HDF5 file ({error}): write it again with `elmoc dump-features`"
            ) from None
        self.attributes: dict[str, Any] = dict(self._file.attrs)
        self._layout = LAYOUTS[layout].reader(self._file)
        self.layers, self.width, first = self._layout.layers, self._layout.width, self._layout.first
        self.dtype, self._type = first.dtype, first.id.get_type()
        with open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._layout)

    def __getitem__(self, index: int) -> np.ndarray:
        """[L + 1, n, 2P], or [n, 2P] when the file holds one layer, in the type that the file holds."""
        return np.array(self.view(index))

    def view(self, index: int) -> np.ndarray:
        """The same without a copy, read-only: a part of the file itself, mapped into memory.

        It is read when it is used, into memory that all processes share (the system's page cache), and stays good when
        the `FeatureFile` is closed. Of datasets in chunks (foreign files, compressed ones) it is a copy.
        """
        if not 0 <= index < len(self._layout):
            raise IndexError(f"sentence {index} of {len(self._layout)}")
        try:
            return self._layout.view(index, self._dataset)
        except (KeyError, OSError) as error:
            raise InputError(f"{self.path}: sentence {index} cannot be read ({error}): write it again") from None

    def _dataset(self, name: str) -> np.ndarray:
        dataset = h5py.h5d.open(self._file.id, name.encode())
        offset = dataset.get_offset()  # None when the data are in chunks, or there are none
        if offset is None or not dataset.get_type().equal(self._type) or offset % self.dtype.alignment:
            return self._file[name][()]
        return np.ndarray(dataset.shape, self.dtype, buffer=self._content, offset=offset)

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
