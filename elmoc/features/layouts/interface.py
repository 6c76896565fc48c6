"""Interface of layouts: what reader and writer of one form on disk give, and how a
feature file is written.

A file appears whole or not at all. Datasets are made through HDF5's own functions, with
few calls: h5py's take three times as long.
"""

import io
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from elmoc.errors import InputError
from elmoc.files.arrays import all_finite
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.writing import atomic_path, refuse_existing
from elmoc.text.sentences import Sentence

FORMAT_VERSION = 1
# The most that a compressed chunk holds: what has to be unpacked to read one number.
CHUNK_BYTES = 1 << 20
# More of it takes several times as long, and makes float32 or float16 hardly smaller.
_GZIP_LEVEL = 1
# The axes of [L', n, 2P] with the first of them moved to each place.
_LAYERS_AT = ((0, 1, 2), (1, 0, 2), (1, 2, 0))


@dataclass(frozen=True, kw_only=True)
class FeatureShape:
    """The form of all sentences of a feature file: `[layers, n, width]`, or `[n,
    width]`, for n words.

    layers: layers a sentence has in the file.
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
        return (words, self.width) if self.single else (self.layers, words, self.width)


class LayoutReader(ABC):
    """Finds sentences in an open file; raises whatever it finds wrong, within the
    caller's `reading(path)`.

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
        """[L + 1, n, 2P] of a sentence, or [n, 2P]: a part of the file where it can be,
        else a copy.
        """

    @abstractmethod
    def words(self, index: int) -> int:
        """How many words a sentence has; its numbers are not read."""

    def lines(self) -> dict[str, int]:
        """The index of each sentence by its text, of equal ones the last; an
        `InputError` in a file without a map.
        """
        raise InputError("it has no map of sentences: they are found by number alone")

    def documents(self) -> dict[str, range]:
        """The sentences of each document by its key, in order; empty in a file that
        does not tell documents apart.
        """
        return {}


class LayoutWriter(ABC):
    """Writes sentences into a file, in order, each a dataset or a part of one; made by
    `open`.

    layout: the name of the form.
    reader: what reads it.
    needs_documents: every sentence has to be part of a document.
    found_by_words: sentences can be found by their words: by a map (`sentence_map`), or
    as keys (`sentence_keys`).
    layers_axis: where its arrays have the axis of layers, also for one layer; None:
    where the sentence has it, if any.
    """

    layout: ClassVar[str]
    reader: ClassVar[type[LayoutReader]]
    needs_documents: ClassVar[bool] = False
    found_by_words: ClassVar[bool] = False
    layers_axis: ClassVar[int | None] = None

    def __init__(
        self,
        disk: "_DiskFile",
        shape: FeatureShape,
        *,
        compress: bool,
        by_map: bool,
        by_keys: bool,
    ) -> None:
        self._file = _new_file(disk)
        self._disk = disk
        self._shape = shape
        self._compress = compress
        self._by_map = by_map
        self._by_keys = by_keys
        self._words_axis = int(
            self.layers_axis == 0 or (self.layers_axis is None and not shape.single)
        )
        self._type = h5t.py_create(np.dtype(shape.dtype))
        self._plain = _properties()
        self._plain.set_alloc_time(
            h5d.ALLOC_TIME_EARLY
        )  # in one piece, which can be mapped into memory

    @classmethod
    @contextmanager
    def open(
        cls,
        path: Path | str,
        attributes: dict[str, Any],
        *,
        shape: FeatureShape,
        compress: bool = False,
        sentence_map: bool = True,
        sentence_keys: bool = False,
    ) -> Iterator[Self]:
        """Open a new feature file; it appears under its name only when the block ends
        well, and is locked until then.

        Args:
            path: the file; it must not exist.
            attributes: strings, numbers and lists of them, which become attributes of
                the root.
            shape: of all sentences.
            compress: pack the numbers with gzip.
            sentence_map: write how sentences are found by their words, where the layout
                can.
            sentence_keys: let the sentence be the key of its dataset, in place of its
                number; for layouts whose sentences can be found by their words.

        Raises:
            InputError: the file exists already, or is being written by another process.
            OSError: its disk is full.
        """
        refuse_existing(path)
        form = {
            "layout": cls.layout,
            "format_version": FORMAT_VERSION,
            "single": shape.single,
        }
        keys = {"sentence_keys": True} if sentence_keys else {}
        with atomic_path(path) as partial, _DiskFile(partial, "w+") as disk:
            try:
                writer = cls(
                    disk,
                    shape,
                    compress=compress,
                    by_map=sentence_map,
                    by_keys=sentence_keys,
                )
                with writer._file as file:
                    for name, value in {**attributes, **form, **keys}.items():
                        file.attrs[name] = value
                    yield writer
                    writer.finish()
            finally:
                disk.raise_error()

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Write the next sentence and its states: [L', n, 2P], or [n, 2P] where the
        shape says single, in its type.
        """
        wanted = self._shape.of(sentence.length)
        if (
            states.shape != wanted or states.dtype != self._shape.dtype
        ):  # HDF5 would read past their end
            raise ValueError(
                f"the states are {states.dtype} {states.shape}, not {self._shape.dtype} {wanted}"
            )
        self.put(sentence, states)
        self._disk.raise_error()

    @abstractmethod
    def put(self, sentence: Sentence, states: np.ndarray) -> None:
        """`add`, of states that have been checked."""

    def finish(self) -> None:  # noqa: B027 (not every layout has something there)
        """Write what follows the last sentence."""

    def _shape_of(self, words: int) -> tuple[int, ...]:
        """The shape of a dataset of that many words."""
        if self.layers_axis is None:
            return self._shape.of(words)
        lengths = [words, self._shape.width]
        lengths.insert(self.layers_axis, self._shape.layers)
        return tuple(lengths)

    def _words_in(self, size: int) -> int:
        """How many words have that many bytes; at least one."""
        return max(1, size // (self._type.get_size() * math.prod(self._shape_of(1))))

    def _create(self, group: h5py.h5g.GroupID, name: str, words: int) -> h5d.DatasetID:
        """An empty dataset for this number of words; compressed, it has chunks of some
        words with all layers each.
        """
        shape = self._shape_of(words)
        properties = self._plain
        if self._compress and words:
            chunk = list(shape)
            chunk[self._words_axis] = min(words, self._words_in(CHUNK_BYTES))
            properties = _properties()
            properties.set_chunk(tuple(chunk))
            properties.set_shuffle()
            properties.set_deflate(_GZIP_LEVEL)
        return h5d.create(
            group, name.encode(), self._type, h5s.create_simple(shape), properties
        )

    def _write(self, group: h5py.h5g.GroupID, name: str, states: np.ndarray) -> None:
        """The dataset of a sentence, whose states are given as the sentence has them."""
        dataset = self._create(group, name, states.shape[-2])
        if states.size:
            dataset.write(h5s.ALL, h5s.ALL, self._arranged(states), self._type)

    def _arranged(self, states: np.ndarray) -> np.ndarray:
        """The states of a sentence with their axes in the order of the layout, in one
        piece of memory.
        """
        if self.layers_axis is not None:
            states = (states[None] if self._shape.single else states).transpose(
                _LAYERS_AT[self.layers_axis]
            )
        if self.layers_axis != 2:
            return np.ascontiguousarray(states)
        packed = np.empty(states.shape, states.dtype)
        for layer in range(states.shape[2]):  # three times as fast as NumPy's own order
            packed[:, :, layer] = states[:, :, layer]
        return packed

    def _write_text(self, name: str, content: bytes) -> None:
        """A dataset of shape (1,) that holds one text of any length."""
        self._file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"))[0] = (
            content
        )


class _DiskFile(io.FileIO):
    """The file that HDF5 writes to. The library crashes the process when a write fails
    (a full disk), so none does.

    The first exception, an interrupt too, is kept for `raise_error`, and what would be
    written after it is thrown away.
    """

    error: BaseException | None = None

    def raise_error(self) -> None:
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and self.error is None:
                rest = rest[super().write(rest) :]
        except BaseException as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file."""
        try:
            return super().truncate(size) if self.error is None else 0
        except BaseException as error:
            self.error = error
            return 0


def converted(states: np.ndarray, dtype: str) -> np.ndarray:
    """The layer states of a sentence in the type of a file.

    Numbers that are too large for it or not finite are an `InputError`.
    """
    if not all_finite(states):
        raise InputError(
            "the layer states are not finite: the model or its word vectors are damaged, get them again"
        )
    try:
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        raise InputError(
            f"the layer states are too large for {dtype}: write another type"
        ) from None


def _new_file(disk: _DiskFile) -> h5py.File:
    """A file that any HDF5 since 1.8 reads, and that tracks the order of what is in its
    root.

    In the earliest form of the rest, data begin at multiples of eight bytes, so that
    they can be mapped into memory.
    """
    creation = h5p.create(h5p.FILE_CREATE)
    access = h5p.create(h5p.FILE_ACCESS)
    creation.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V18)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    return h5py.File(h5f.create(b"features", h5f.ACC_TRUNC, creation, access))


def _properties() -> h5p.PropDCID:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    properties.set_fill_time(h5d.FILL_TIME_NEVER)  # every number is written
    return properties
