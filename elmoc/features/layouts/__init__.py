"""Layouts of feature files: what the reader and the writer of one form on disk give.

    allennlp, e2e_coref, flat   the layouts; `bilm` is allennlp's without a map

Letters: n words of a sentence, L' layers in the file, P projection.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.files.hdf5 import CheckedFile, DiskFile, HdfOutput
from elmoc.files.writing import atomic_path, refuse_existing

FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class FeatureShape:
    """The form of all sentences of a feature file: `[layers, n, width]`, or `[n,
    width]`, for n words.

    layers: layers of a sentence in the file.
    width: width of the vectors, 2P.
    dtype: of the numbers, `float32` or `float16`.
    single: whether there is no axis of layers: one layer, the top one or the average.
    words: the words of all sentences together, which the flat layout has to know
        beforehand.
    """

    layers: int
    width: int
    dtype: str
    single: bool
    words: int = 0

    def of(self, words: int) -> tuple[int, ...]:
        """The shape of a sentence of that many words."""
        sentence = (self.layers, words, self.width)
        return sentence[1:] if self.single else sentence


@dataclass(frozen=True)
class Entry:
    """A sentence as a feature file has it.

    length: the number of words that it has states of.
    line: its text without white space around it, by which it is found.
    document: the key of the document that it is a part of.
    """

    length: int
    line: str = ""
    document: str | None = None


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


class LayoutReader(ABC):
    """Finds sentences in an open file.

    It raises any error about what it finds wrong: callers are within `reading(path)`.

    has_map: whether sentences can be found by their words.
    first: a dataset of the file's numbers.
    layers: of every sentence.
    width: of every vector, 2P.
    """

    has_map = False
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
        """[L', n, 2P] of a sentence, or [n, 2P]: a part of the file where it can be,
        else a copy.
        """

    def lines(self) -> dict[str, int]:
        """The index of each sentence by its text, of equal ones the last.

        Raises:
            InputError: the file has no map.
        """
        raise InputError("it has no map of sentences: they are found by number alone")


class LayoutWriter(ABC):
    """Writes sentences into a file, in order, each a dataset or a part of one; made by
    `open`.

    layout: the name of the form.
    reader: the class that reads it.
    needs_documents: every sentence has to be part of a document.
    found_by_words: sentences can be found by their words.
    layers_axis: where its arrays have the axis of layers, also for one layer; None
        where the sentence has it, if it has one.
    output: the file that is written.
    shape: of all sentences.
    count: the number of sentences that have been written.
    has_map: whether to write how sentences are found by their words.
    """

    layout: ClassVar[str]
    reader: ClassVar[type[LayoutReader]]
    needs_documents: ClassVar[bool] = False
    found_by_words: ClassVar[bool] = False
    layers_axis: ClassVar[int | None] = None

    def __init__(
        self, output: HdfOutput, shape: FeatureShape, *, sentence_map: bool
    ) -> None:
        self.output = output
        self.shape = shape
        self.count = 0
        self.has_map = sentence_map and self.found_by_words
        self.begin()

    @classmethod
    @contextmanager
    def open(
        cls,
        path: Path | str,
        attributes: dict[str, Any],
        *,
        shape: FeatureShape,
        sentence_map: bool = True,
    ) -> Iterator[Self]:
        """Open a new feature file; it appears under its name only when the block ends
        well, and is locked until then.

        Args:
            path: the file; it must not exist.
            attributes: strings, numbers and lists of them, which become attributes of
                the root.
            shape: of all sentences.
            sentence_map: write how sentences are found by their words, where the layout
                can.

        Raises:
            InputError: the file exists already, or is being written by another process.
            OSError: its disk is full.
        """
        form = {
            "layout": cls.layout,
            "format_version": FORMAT_VERSION,
            "single": shape.single,
        }
        refuse_existing(path)
        with (
            atomic_path(path, checksum=True) as partial,
            DiskFile(partial, "w+") as disk,
        ):
            try:
                output = HdfOutput(disk, shape.dtype)
                with output.file:
                    writer = cls(output, shape, sentence_map=sentence_map)
                    output.file.attrs.update(attributes | form)
                    yield writer
                    writer.finish()
            finally:
                disk.raise_error()

    def add(self, entry: Entry, states: np.ndarray) -> None:
        """Write the next sentence.

        Args:
            entry: its text and document.
            states: [L', n, 2P], or [n, 2P] where the shape says single, in its type.

        Raises:
            ValueError: the states have another shape or type.
        """
        wanted = self.shape.of(entry.length)
        # HDF5 takes the bytes as they are: of another type they would be other numbers.
        if states.shape != wanted or states.dtype != self.shape.dtype:
            raise ValueError(
                f"the states are {states.dtype} {states.shape}, not "
                f"{self.shape.dtype} {wanted}"
            )
        if self.layers_axis is not None:
            layers = states[None] if self.shape.single else states
            # Layer by layer it is three times as fast as in NumPy's own order.
            states = np.stack(list(layers), axis=self.layers_axis)
        self.put(entry, states)
        self.count += 1
        self.output.disk.raise_error()

    def begin(self) -> None:  # noqa: B027 (not every layout has something there)
        """Prepare for the first sentence."""

    @abstractmethod
    def put(self, entry: Entry, array: np.ndarray) -> None:
        """Write the next sentence, whose states have been checked, and arranged as the
        layout has them.
        """

    def finish(self) -> None:  # noqa: B027 (not every layout has something there)
        """Write what follows the last sentence."""
