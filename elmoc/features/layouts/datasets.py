"""Datasets of sentences: how the arrays of one are arranged, and its dataset made in the least time."""

import math

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from elmoc.features.layouts.sentence import FeatureOptions

# The most that a compressed chunk holds: what has to be unpacked to read one number.
CHUNK_BYTES = 1 << 20
# The most that is arranged anew in memory, of a sentence of any length.
BLOCK_BYTES = 1 << 28
# More of it takes several times as long, and makes float32 or float16 hardly smaller.
_GZIP_LEVEL = 1
# The axes of [L', n, 2P] with the first of them moved to each place.
_LAYERS_AT = ((0, 1, 2), (1, 0, 2), (1, 2, 0))


class Datasets:
    """Makes datasets through HDF5's own functions, with few calls: h5py's take three times as long.

    layers_axis: where they have the axis of layers, see `LayoutWriter`.
    words_axis: where they have the axis of words.
    """

    def __init__(self, options: FeatureOptions, layers_axis: int | None) -> None:
        self._shape, self._compress, self._layers_axis = options.shape, options.compress, layers_axis
        self.words_axis = int(layers_axis == 0 or (layers_axis is None and not options.shape.single))
        self._type = h5t.py_create(np.dtype(options.shape.dtype))
        self._plain = _properties()
        self._plain.set_alloc_time(h5d.ALLOC_TIME_EARLY)  # in one piece, which can be mapped into memory

    def arranged(self, states: np.ndarray) -> np.ndarray:
        """The states of a sentence, [L', n, 2P] or [n, 2P], with their axes in the order of the layout."""
        if self._layers_axis is None:
            return states
        return (states[None] if self._shape.single else states).transpose(_LAYERS_AT[self._layers_axis])

    def shape(self, words: int) -> tuple[int, ...]:
        """The shape of a dataset of that many words."""
        if self._layers_axis is None:
            return self._shape.of(words)
        lengths = [words, self._shape.width]
        lengths.insert(self._layers_axis, self._shape.layers)
        return tuple(lengths)

    def words_in(self, size: int) -> int:
        """How many words have that many bytes; at least one."""
        return max(1, size // (self._type.get_size() * math.prod(self.shape(1))))

    def create(self, group: h5py.h5g.GroupID, name: str, words: int) -> h5d.DatasetID:
        """An empty dataset for so many words; what is compressed is in chunks, each some words with all layers."""
        shape, properties = self.shape(words), self._plain
        if self._compress and words:
            chunk = list(shape)
            chunk[self.words_axis] = min(words, self.words_in(CHUNK_BYTES))
            properties = _properties()
            properties.set_chunk(tuple(chunk))
            properties.set_shuffle()
            properties.set_deflate(_GZIP_LEVEL)
        return h5d.create(group, name.encode(), self._type, h5s.create_simple(shape), properties)

    def write(self, group: h5py.h5g.GroupID, name: str, states: np.ndarray) -> None:
        """The dataset of a sentence, whose states are given as the sentence has them."""
        words, step = states.shape[-2], self.words_in(BLOCK_BYTES)
        dataset = self.create(group, name, words)
        if 0 < words <= step:
            dataset.write(h5s.ALL, h5s.ALL, self._packed(states), self._type)
        for start in range(0, words, step) if words > step else ():
            self.put(dataset, start, self._packed(states[..., start : start + step, :]))

    def put(self, dataset: h5d.DatasetID, start: int, array: np.ndarray) -> None:
        """Write an arranged array at a word of a dataset."""
        begin, there = [0] * array.ndim, dataset.get_space()
        begin[self.words_axis] = start
        there.select_hyperslab(tuple(begin), array.shape)
        dataset.write(h5s.create_simple(array.shape), there, array, self._type)

    def _packed(self, states: np.ndarray) -> np.ndarray:
        """The states arranged, in one piece of memory."""
        array = self.arranged(states)
        if self._layers_axis != 2:
            return np.ascontiguousarray(array)
        packed = np.empty(array.shape, array.dtype)
        for layer in range(array.shape[2]):  # three times as fast as NumPy's own order
            packed[:, :, layer] = array[:, :, layer]
        return packed


def _properties() -> h5p.PropDCID:
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    properties.set_fill_time(h5d.FILL_TIME_NEVER)  # every number is written
    return properties


def write_text(file: h5py.File, name: str, content: bytes) -> None:
    """A dataset of shape (1,) that holds one text of any length."""
    file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"))[0] = content
