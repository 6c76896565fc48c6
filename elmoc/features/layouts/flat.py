"""The `flat` layout of feature files: all sentences in one dataset, for training at
scale.

A dataset `states`, `[words, L + 1, 2P]` (also for one layer), holds the sentences one
behind the other, and a dataset `offsets`, int64 `[sentences + 1]`, the word at which
each begins, and the number of words at its end.
"""

from typing import Any

import h5py
import numpy as np

from elmoc.features.layouts import Entry, LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile, require_size

STATES = "states"
OFFSETS = "offsets"
# Bytes that are gathered before they are written: a write costs as much as some
# hundred words.
BLOCK_BYTES = 1 << 23


class FlatReader(LayoutReader):
    """Reads the `flat` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self.first = file.stored(STATES)
        words, self.layers, self.width = self.first.shape
        offsets = file.read(OFFSETS).astype(np.int64)  # [sentences + 1]
        if offsets[0] != 0 or offsets[-1] != words or (np.diff(offsets) < 0).any():
            raise ValueError(f"its offsets do not go from 0 to {words}")
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def view(self, index: int) -> np.ndarray:
        start = self._offsets[index]
        end = self._offsets[index + 1]
        require_size(self.first, int(end - start))
        # [n, L', 2P] → [L', n, 2P]
        return np.moveaxis(self.first[start:end], 1, 0)


class FlatWriter(LayoutWriter):
    """Writes the `flat` layout; all sentences together have `shape.words` words."""

    layout = "flat"
    reader = FlatReader
    layers_axis = 1

    def begin(self) -> None:
        # Created before any sentence is there, so that it is one piece of the file.
        shape = (self.shape.words, self.shape.layers, self.shape.width)
        self._states = h5py.Dataset(self.output.create(STATES, shape))
        self._block: list[np.ndarray] = []  # [n, L', 2P] each, not written yet
        self._block_bytes = 0
        # The last one is the number of words that have been put.
        self._offsets = [0]

    def put(self, entry: Entry, array: np.ndarray) -> None:
        self._offsets.append(self._offsets[-1] + entry.length)
        self._block.append(array)
        self._block_bytes += array.nbytes
        if self._block_bytes >= BLOCK_BYTES:
            self._write_block()

    def _write_block(self) -> None:
        rows = np.concatenate(self._block)  # [words, L', 2P]
        end = self._offsets[-1]
        self._states[end - len(rows) : end] = rows
        self._block = []
        self._block_bytes = 0

    def finish(self) -> None:
        if self._block:
            self._write_block()
        offsets = np.array(self._offsets, dtype="<i8")
        self.output.file.create_dataset(OFFSETS, data=offsets)
