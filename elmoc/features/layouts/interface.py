"""Interface of layouts: what a writer is told, what reader and writer of one form on disk give, how datasets are made.

Datasets are made through HDF5's own functions, with few calls: h5py's take three times as long.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from elmoc.errors import InputError
from elmoc.files.hdf5 import CheckedFile

# The most that a compressed chunk holds: what has to be unpacked to read one number.
CHUNK_BYTES = 1 << 20
# The most that is arranged anew in memory, of a sentence of any length.
BLOCK_BYTES = 1 << 28
# More of it takes several times as long, and makes float32 or float16 hardly smaller.
_GZIP_LEVEL = 1
# The axes of [L', n, 2P] with the first of them moved to each place.
_LAYERS_AT = ((0, 1, 2), (1, 0, 2), (1, 2, 0))


@dataclass(frozen=True)
class Sentence:
    """A sentence of a feature file.

    tokens: its words.
    line: its text without white space around it, by which it is found again; by default the words with one blank
        between them.
    document: the key of the document that it is a part of (`doc_key` in jsonlines).
    """

    tokens: Sequence[str]
    line: str = ""
    document: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "line", self.line.strip() or " ".join(self.tokens))

    @property
    def is_divided(self) -> bool:
        """Whether the line has these words with white space between them, and none in them, so that they find it."""
        return self.line.split() == list(self.tokens)


@dataclass(frozen=True, kw_only=True)
class FeatureShape:
    """The form of all sentences of a feature file: `[layers, n, width]`, or `[n, width]`, for n words.

    layers: layers a sentence has in the file.
    width: width of the vectors, 2P.
    dtype: of the numbers, `float32` or `float16`.
    single: whether there is no axis of layers: one layer, the top one or the average.
    words: the words of all sentences together, which the flat layout has to know beforehand.
    """

    layers: int
    width: int
    dtype: str
    single: bool
    words: int | None = None

    def of(self, words: int) -> tuple[int, ...]:
        """The shape of a sentence of that many words."""
        return (words, self.width) if self.single else (self.layers, words, self.width)


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
        raise InputError("no map of sentences is in it: they have numbers only")

    def documents(self) -> dict[str, range]:
        """The sentences of each document by its key, in order; empty in a file that does not tell documents apart."""
        return {}


class LayoutWriter(ABC):
    """Writes sentences into an open file, in order, each a dataset or a part of one.

    needs_documents: every sentence has to be part of a document.
    found_by_words: sentences can be found by their words: by a map (`sentence_map`), or as keys (`sentence_keys`).
    layers_axis: where its arrays have the axis of layers, also for one layer; None: where the sentence has it, if any.
    """

    needs_documents: ClassVar[bool] = False
    found_by_words: ClassVar[bool] = False
    layers_axis: ClassVar[int | None] = None

    def __init__(self, file: h5py.File, shape: FeatureShape, *, compress: bool, by_map: bool, by_keys: bool) -> None:
        self._file, self._shape, self._compress = file, shape, compress
        self._by_map, self._by_keys = by_map, by_keys
        self._words_axis = int(self.layers_axis == 0 or (self.layers_axis is None and not shape.single))
        self._type = h5t.py_create(np.dtype(shape.dtype))
        self._plain = _properties()
        self._plain.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # in one piece, which can be mapped into memory

    @abstractmethod
    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Write the next sentence, [L', n, 2P] or [n, 2P]."""

    def finish(self) -> None:  # noqa: B027 (not every layout has something there)
        """Write what follows the last sentence."""

    def _arranged(self, states: np.ndarray) -> np.ndarray:
        """The states of a sentence with their axes in the order of the layout."""
        if self.layers_axis is None:
            return states
        return (states[None] if self._shape.single else states).transpose(_LAYERS_AT[self.layers_axis])

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
        """An empty dataset for so many words; what is compressed is in chunks, each some words with all layers."""
        shape, properties = self._shape_of(words), self._plain
        if self._compress and words:
            chunk = list(shape)
            chunk[self._words_axis] = min(words, self._words_in(CHUNK_BYTES))
            properties = _properties()
            properties.set_chunk(tuple(chunk))
            properties.set_shuffle()
            properties.set_deflate(_GZIP_LEVEL)
        return h5d.create(group, name.encode(), self._type, h5s.create_simple(shape), properties)

    def _write(self, group: h5py.h5g.GroupID, name: str, states: np.ndarray) -> None:
        """The dataset of a sentence, whose states are given as the sentence has them."""
        words, step = states.shape[-2], self._words_in(BLOCK_BYTES)
        dataset = self._create(group, name, words)
        if 0 < words <= step:
            dataset.write(h5s.ALL, h5s.ALL, self._packed(states), self._type)
        for start in range(0, words, step) if words > step else ():
            self._put(dataset, start, self._packed(states[..., start : start + step, :]))

    def _put(self, dataset: h5d.DatasetID, start: int, array: np.ndarray) -> None:
        """Write an arranged array at a word of a dataset."""
        begin, there = [0] * array.ndim, dataset.get_space()
        begin[self._words_axis] = start
        there.select_hyperslab(tuple(begin), array.shape)
        dataset.write(h5s.create_simple(array.shape), there, array, self._type)

    def _packed(self, states: np.ndarray) -> np.ndarray:
        """The states arranged, in one piece of memory."""
        array = self._arranged(states)
        if self.layers_axis != 2:
            return np.ascontiguousarray(array)
        packed = np.empty(array.shape, array.dtype)
        for layer in range(array.shape[2]):  # three times as fast as NumPy's own order
            packed[:, :, layer] = array[:, :, layer]
        return packed

    def _write_text(self, name: str, content: bytes) -> None:
        """A dataset of shape (1,) that holds one text of any length."""
        self._file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"))[0] = content


def _properties() -> h5p.PropDCID:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    properties.set_fill_time(h5d.FILL_TIME_NEVER)  # every number is written
    return properties
