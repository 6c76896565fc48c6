"""Layouts of feature files: the reader and the writer of one form on disk each, and the table of them.

`FeatureFile` and `write_features` open the HDF5 file, map it into memory, keep its attributes, and see to atomic
writing and full disks; a layout finds or puts sentences in the open file. What a reader takes from its `CheckedFile`
lies in that file and is there whole; other errors of the library become an `InputError` by `CheckedFile.damage`.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import h5py
import numpy as np

from elmoc.features.layouts.allennlp import AllennlpReader, AllennlpWriter
from elmoc.files.hdf5 import CheckedFile


class LayoutReader(Protocol):
    """Finds sentences in an open file."""

    first: h5py.Dataset
    """One whose type is that of the file's numbers."""
    layers: int
    width: int
    has_map: bool
    """Whether the file has a map of sentences."""

    def __init__(self, file: CheckedFile) -> None:
        """Raises `InputError` for a file that is not in the layout."""

    def __len__(self) -> int:
        """The number of sentences."""
        ...

    def view(self, index: int, dataset: Callable[[str], np.ndarray]) -> np.ndarray:
        """[L + 1, n, 2P] of a sentence, or [n, 2P]; `dataset` reads a dataset by name, without a copy where it can."""
        ...

    def sentence_map(self) -> dict[str, int]:
        """The index of each sentence, by its words with one blank between them; raises `InputError`."""
        ...


class LayoutWriter(Protocol):
    """Writes sentences into an open file, in order; `sentence_map`: so that they can be found by their words."""

    def __init__(self, file: h5py.File, sentence_map: bool) -> None: ...

    def add(self, line: str, states: np.ndarray) -> None:
        """Write the next sentence."""

    def finish(self) -> None:
        """Write what follows the last sentence."""


class Layout(NamedTuple):
    """One form on disk."""

    reader: type[LayoutReader]
    writer: type[LayoutWriter]


LAYOUTS = {"allennlp": Layout(AllennlpReader, AllennlpWriter)}
