"""Interface of layouts: what the reader and the writer of one form on disk give."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

import h5py
import numpy as np

from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.unfinished.notes import Notes
from elmoc.files.hdf5 import CheckedFile

Rows = Callable[..., np.ndarray]
"""`rows(name, start, stop)`: the rows of a dataset, without a copy where it can; all of them without start and stop."""


class LayoutReader(Protocol):
    """Finds sentences in an open file."""

    first: h5py.Dataset
    """One whose type is that of the file's numbers."""
    layers: int
    width: int
    has_map: bool
    """Whether the file has a map of sentences."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        """Raises `InputError` for a file that is not in the layout."""

    def __len__(self) -> int:
        """The number of sentences."""
        ...

    def view(self, index: int, rows: Rows) -> np.ndarray:
        """[L + 1, n, 2P] of a sentence, or [n, 2P]; `rows` reads a dataset."""
        ...

    def words(self, index: int) -> int:
        """How many words a sentence has; its numbers are not read."""
        ...

    def lines(self) -> dict[str, int]:
        """The index of each sentence by its text, of equal ones the last; an `InputError` in a file without a map."""
        ...

    def documents(self) -> dict[str, range] | None:
        """The sentences of each document by its key, in order; None in a file that does not tell documents apart."""
        ...


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """What a layout is written with; see `write_features`."""

    shape: FeatureShape
    compress: bool = False
    sentence_map: bool = True
    sentence_keys: bool = False


class SlabWriter(Protocol):
    """Takes the states of one sentence in pieces."""

    def put(self, start: int, stop: int, columns: slice, states: np.ndarray) -> None:
        """Write words `start` to `stop` in some of the columns: [L', m, columns], or [m, columns]."""

    def end(self) -> None:
        """Raise a `ValueError` unless all of the sentence has been put."""


class LayoutWriter(Protocol):
    """Writes sentences into an open file, in order.

    What it has to know when a killed process is gone on with is its `memory`, and what stands in its `notes`.
    """

    def __init__(
        self, file: h5py.File, options: LayoutOptions, notes: Notes, memory: dict[str, int | str] | None
    ) -> None:
        """`memory` is None for a new file, else what the writer had when the file was left."""

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Write the next sentence."""

    def start(self, sentence: Sentence) -> SlabWriter:
        """Make room for the next sentence."""
        ...

    def memory(self) -> dict[str, int | str]:
        """What is to be known to go on from here; everything added before is handed to HDF5 first."""
        ...

    def rewritten(self) -> range:
        """The bytes of the file in which a writer that goes on writes anew what follows the last sentence."""
        ...

    def finish(self) -> None:
        """Write what follows the last sentence."""


class Member(Enum):
    """What lies in the root of a file, by which one file is made of several parts: see `elmoc.features.join`."""

    SENTENCE = "a dataset a sentence, under its number, or the sentence as its key"
    DOCUMENT = "a group a document, with a dataset a sentence under its number"
    ALL = "one dataset of all sentences and that of their offsets, as `flat` has them"


class Layout(NamedTuple):
    """One form on disk."""

    reader: type[LayoutReader]
    writer: type[LayoutWriter]
    member: Member = Member.SENTENCE
