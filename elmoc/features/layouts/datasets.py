"""Datasets of sentences: how one is made in the least time, whole or in pieces, plain or compressed."""

import math
from dataclasses import dataclass
from functools import cache

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from elmoc.features.layouts.sentence import FeatureShape

CHUNK_BYTES = 1 << 20
"""The most that a compressed chunk holds: what has to be unpacked to read one number."""
_GZIP_LEVEL = 1
"""More of it takes several times as long, and makes float32 or float16 hardly smaller."""
_LAYERS_AT = ((0, 1, 2), (1, 0, 2), (1, 2, 0))
"""The axes of [L', n, 2P] with the first of them moved to each place."""


@dataclass(frozen=True)
class Form:
    """How a layout arranges the states of a sentence.

    layers_axis: where it has the axis of layers, then also for a sentence of one layer; None: where the sentence has
        it, which need not have one.
    """

    shape: FeatureShape
    layers_axis: int | None = None

    @property
    def words_axis(self) -> int:
        """The axis of words, which the axis of columns follows, be the layers between them or not."""
        return int(self.layers_axis == 0 or (self.layers_axis is None and not self.shape.single))

    @property
    def columns_axis(self) -> int:
        """The axis of columns, which are the width."""
        return self.words_axis + 1 + (self.layers_axis == 1)

    def of(self, words: int) -> tuple[int, ...]:
        """The shape of a sentence of that many words."""
        if self.layers_axis is None:
            return self.shape.of(words)
        lengths = [words, self.shape.width]
        lengths.insert(self.layers_axis, self.shape.layers)
        return tuple(lengths)

    def arranged(self, states: np.ndarray) -> np.ndarray:
        """The states of a sentence with their axes in this order."""
        if self.layers_axis is None:
            return states
        array = states[None] if self.shape.single else states
        return array.transpose(_LAYERS_AT[self.layers_axis])

    def packed(self, states: np.ndarray) -> np.ndarray:
        """The same in one piece of memory."""
        array = self.arranged(states)
        if self.layers_axis != 2:
            return np.ascontiguousarray(array)
        packed = np.empty(array.shape, array.dtype)
        for layer in range(array.shape[2]):  # three times as fast as NumPy's own order
            packed[:, :, layer] = array[:, :, layer]
        return packed


class Datasets:
    """Makes datasets through HDF5's own functions, with few calls: h5py's take three times as long."""

    def __init__(self, form: Form, *, compress: bool) -> None:
        self._form, self._compress = form, compress
        self._type = h5t.py_create(np.dtype(form.shape.dtype))
        self._plain = plain_properties()

    def create(self, group: h5py.h5g.GroupID, name: str, words: int, *, chunk: int | None = None) -> h5d.DatasetID:
        """An empty dataset for so many words; what is compressed is in chunks, each some words with all layers.

        With a `chunk`, a number of words, it is in any case in chunks, of so many, and can grow.
        """
        shape, axis = self._form.of(words), self._form.words_axis
        properties, most = self._plain, None
        if chunk or (self._compress and words):
            rows = chunk or min(self.chunk_words(), words)
            properties = _properties()
            properties.set_chunk((*shape[:axis], rows, *shape[axis + 1 :]))
            if self._compress:
                properties.set_shuffle()
                properties.set_deflate(_GZIP_LEVEL)
            if chunk:
                most = (*shape[:axis], h5s.UNLIMITED, *shape[axis + 1 :])
        return h5d.create(group, name.encode(), self._type, h5s.create_simple(shape, most), properties)

    def chunk_words(self, size: int = CHUNK_BYTES) -> int:
        """How many words have so many bytes; at least one."""
        return max(1, size // (self._type.get_size() * math.prod(self._form.of(1))))

    def write(self, group: h5py.h5g.GroupID, name: str, states: np.ndarray) -> None:
        """A dataset of a sentence, whose states are given as the sentence has them."""
        array = self._form.packed(states)
        dataset = self.create(group, name, array.shape[self._form.words_axis])
        if array.size:
            dataset.write(h5s.ALL, h5s.ALL, array, self._type)


@cache
def plain_properties() -> h5p.PropDCID:
    """Those of a dataset in one piece."""
    properties = _properties()
    properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    return properties


def _properties() -> h5p.PropDCID:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    properties.set_fill_time(h5d.FILL_TIME_NEVER)  # every number is written
    return properties


class Slab:
    """Takes the states of one sentence in pieces, each of which is put into a dataset at once.

    Args:
        dataset: where they go.
        form: of the dataset.
        words: of the sentence.
        first: the row of the dataset in which the sentence begins.
    """

    def __init__(self, dataset: h5d.DatasetID, form: Form, words: int, *, first: int = 0) -> None:
        self._dataset, self._form, self._words, self._first = dataset, form, words, first
        self._left = math.prod(form.of(words))

    def put(self, start: int, stop: int, columns: slice, states: np.ndarray) -> None:
        """Write words `start` to `stop` in some of the columns: [L', m, columns], or [m, columns]."""
        shape = self._form.shape
        left, right, _ = columns.indices(shape.width)
        wanted = (*shape.of(stop - start)[:-1], right - left)
        if not 0 <= start <= stop <= self._words or states.shape != wanted or states.dtype != shape.dtype:
            raise ValueError(
                f"states of shape {states.shape} and type {states.dtype}, where {wanted} and {shape.dtype} are "
                f"expected for words {start} to {stop} of {self._words}"
            )
        if not states.size:
            return
        piece = self._form.packed(states)
        begin = [0] * piece.ndim
        begin[self._form.words_axis], begin[self._form.columns_axis] = self._first + start, left
        there = self._dataset.get_space()
        there.select_hyperslab(tuple(begin), piece.shape)
        self._dataset.write(h5s.create_simple(piece.shape), there, piece, h5t.py_create(piece.dtype))
        self._left -= states.size

    def end(self) -> None:
        """Raise a `ValueError` unless all of the sentence has been put."""
        if self._left:
            raise ValueError(f"{self._left:,} numbers of a sentence are missing, or were put twice")
