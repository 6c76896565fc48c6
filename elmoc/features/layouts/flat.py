"""The `flat` layout of feature files: all sentences in one dataset, for training at
scale.

A dataset `states`, `[words, L + 1, 2P]` (also for one layer), holds the sentences one
behind the other, and a dataset `offsets`, int64 `[sentences + 1]`, the word at which
each begins, and the number of words at its end. Where the sentences are parts of
documents, a dataset `documents`, shape (1,), holds one JSON object {key: number of
sentences}, in order. `states` is one piece of the file, or in chunks where it is
compressed.
"""

import json
from itertools import accumulate, pairwise
from typing import Any

import h5py
import msgspec
import numpy as np
from h5py import h5s

from elmoc.features.layouts.interface import LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile, require_size
from elmoc.files.limits import MOST_SENTENCES
from elmoc.text.sentences import Sentence

STATES = "states"
OFFSETS = "offsets"
DOCUMENTS = "documents"
# What is gathered before it is written.
BLOCK_BYTES = 1 << 23


class FlatReader(LayoutReader):
    """Reads the `flat` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self.first = file.stored(STATES)
        words, self.layers, self.width = self.first.shape
        if h5py.Dataset(file.dataset(OFFSETS)).size > MOST_SENTENCES + 1:
            raise ValueError(f"a file has at most {MOST_SENTENCES:,} sentences")
        self._offsets = file.read(OFFSETS).astype(np.int64)  # [sentences + 1]
        if (
            self._offsets[0] != 0
            or self._offsets[-1] != words
            or (np.diff(self._offsets) < 0).any()
        ):
            raise ValueError(f"its offsets do not go from 0 to {words}")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def view(self, index: int) -> np.ndarray:
        require_size(self.first, self.words(index))
        return np.moveaxis(
            self.first[self._offsets[index] : self._offsets[index + 1]], 1, 0
        )

    def words(self, index: int) -> int:
        return int(self._offsets[index + 1] - self._offsets[index])

    def documents(self) -> dict[str, range]:
        if DOCUMENTS not in self._file:
            return {}
        sizes = msgspec.json.decode(
            h5py.Dataset(self._file.dataset(DOCUMENTS))[0], type=dict[str, int]
        )
        if sum(sizes.values()) != len(self) or min(sizes.values(), default=0) < 0:
            raise ValueError(f"its documents do not have its {len(self)} sentences")
        bounds = pairwise(accumulate(sizes.values(), initial=0))
        return {key: range(*each) for key, each in zip(sizes, bounds, strict=True)}


class FlatWriter(LayoutWriter):
    """Writes the `flat` layout; a `ValueError` where the sentences have not as many
    words as `shape.words` says.
    """

    layout = "flat"
    reader = FlatReader
    layers_axis = 1

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._states = self._create(self._file.id, STATES, self._shape.words)
        self._block: list[np.ndarray] = []  # [n, L', 2P] each, not written yet
        self._in_block = self._written = 0  # words
        self._lengths: list[int] = []
        self._documents: dict[str, int] = {}

    def put(self, sentence: Sentence, states: np.ndarray) -> None:
        self._lengths.append(sentence.length)
        if sentence.document is not None:
            self._documents[sentence.document] = (
                self._documents.get(sentence.document, 0) + 1
            )
        self._block.append(self._arranged(states))
        self._in_block += sentence.length
        if self._in_block >= self._words_in(BLOCK_BYTES):
            self._write_block()

    def _write_block(self) -> None:
        if self._in_block:
            rows = np.concatenate(self._block)
            there = self._states.get_space()
            there.select_hyperslab((self._written, 0, 0), rows.shape)
            self._states.write(h5s.create_simple(rows.shape), there, rows, self._type)
        self._written = self._written + self._in_block
        self._in_block = 0
        self._block = []

    def finish(self) -> None:
        self._write_block()
        if self._written != self._shape.words:
            raise ValueError(
                f"the sentences have {self._written} words, not {self._shape.words}"
            )
        self._file.create_dataset(
            OFFSETS, data=np.cumsum([0, *self._lengths], dtype="<i8")
        )
        if self._documents:
            self._write_text(
                DOCUMENTS, json.dumps(self._documents, ensure_ascii=False).encode()
            )
