"""Interface of layouts: what the reader and the writer of one form on disk give."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts.sentence import FeatureOptions, Sentence
from elmoc.files.hdf5 import CheckedFile


class LayoutReader(ABC):
    """Finds sentences in an open file; raises whatever it finds wrong, within the caller's `reading(path)`.

    has_map: whether sentences can be found by their words.
    first: a dataset of the file's numbers.
    layers, width: of every sentence.
    """

    has_map = False
    _file: CheckedFile
    first: np.ndarray | h5py.Dataset
    layers: int
    width: int

    @abstractmethod
    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None: ...

    @abstractmethod
    def __len__(self) -> int:
        """The number of sentences."""

    @abstractmethod
    def view(self, index: int) -> np.ndarray:
        """[L + 1, n, 2P] of a sentence, or [n, 2P]: a part of the file where it can be, else a copy."""

    @abstractmethod
    def words(self, index: int) -> int:
        """How many words a sentence has; its numbers are not read."""

    def lines(self) -> dict[str, int]:
        """The index of each sentence by its text, of equal ones the last; an `InputError` in a file without a map."""
        raise InputError(
            f"{self._file.path} has no map of sentences: ask for them by their number, or write it again in the "
            "allennlp layout, without --forget-sentences"
        )

    def documents(self) -> dict[str, range]:
        """The sentences of each document by its key, in order; empty in a file that does not tell documents apart."""
        return {}


class LayoutWriter(ABC):
    """Writes sentences into an open file, in order.

    layers_axis: where its arrays have the axis of layers, also for one layer; None: where the sentence has it, if any.
    """

    layers_axis: ClassVar[int | None] = None

    @abstractmethod
    def __init__(self, file: h5py.File, options: FeatureOptions) -> None: ...

    @abstractmethod
    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Write the next sentence."""

    def finish(self) -> None:  # noqa: B027 (not every layout has something there)
        """Write what follows the last sentence."""


class Layout(NamedTuple):
    """One form on disk."""

    reader: type[LayoutReader]
    writer: type[LayoutWriter]


def require_numbers(dataset: np.ndarray | h5py.Dataset, axes: tuple[int, ...]) -> None:
    """Raise a `ValueError` unless a dataset is of floating-point numbers and has one of these numbers of axes."""
    shape, dtype = dataset.shape, dataset.dtype
    if dtype.kind != "f" or dtype.itemsize > 8 or len(shape) not in axes:
        raise ValueError(f"its shape is {shape} and its type {dtype}, which are no layer states")
