"""The `allennlp` layout of feature files: that of the `allennlp elmo` command.

One contiguous dataset of float32 (or float16) a sentence, its key the line number as a string from "0":
`(L + 1, n, 2P)` for all layers, `(n, 2P)` for one. A dataset `sentence_to_index`, shape (1,), holds one JSON object
{stripped line: "index"} (of duplicate lines the last index). Everything else is in the attributes of the root, so that
iterating over the keys finds sentences and the map alone.

With sentence keys, the key is the sentence (see `keys`), there is no map, and the order of the lines is that in which
the file tracks its datasets; of a file without such an order it is that of the keys.
"""

from functools import cached_property
from typing import Any

import h5py
import msgspec
import numpy as np

from elmoc.features.layouts.datasets import Datasets, write_text
from elmoc.features.layouts.interface import LayoutReader, LayoutWriter, require_numbers
from elmoc.features.layouts.keys import SentenceKeys, foreign_line_of, line_of
from elmoc.features.layouts.sentence import FeatureOptions, Sentence
from elmoc.files.hdf5 import CheckedFile

MAP_KEY = "sentence_to_index"


class AllennlpReader(LayoutReader):
    """Reads the `allennlp` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self._is_foreign = "layout" not in attributes
        has_no_numbers = self._is_foreign and "0" not in file and MAP_KEY not in file and len(file.group("")) > 0
        self._has_keys = bool(attributes.get("sentence_keys", has_no_numbers))
        self._length = len(file.group("")) - (MAP_KEY in file and not self._has_keys)
        self.has_map = self._has_keys or MAP_KEY in file
        self.first = file.stored(self._key(0))
        require_numbers(self.first, (2, 3))
        self.layers, _, self.width = (1, *self.first.shape)[-3:]

    def __len__(self) -> int:
        return self._length

    def view(self, index: int) -> np.ndarray:
        return self._file.stored(self._key(index))[()]

    def words(self, index: int) -> int:
        return int(self._file.dataset(self._key(index)).shape[-2])

    def _key(self, index: int) -> str:
        return self._keys[index] if self._has_keys else str(index)

    @cached_property
    def _keys(self) -> list[str]:
        return self._file.names()

    def lines(self) -> dict[str, int]:
        if self._has_keys:
            text_of = foreign_line_of if self._is_foreign else line_of
            return {text_of(key): index for index, key in enumerate(self._keys)}
        if not self.has_map:
            return super().lines()
        content = h5py.Dataset(self._file.dataset(MAP_KEY))[0]
        found = msgspec.json.decode(content, type=dict[str, int], strict=False)
        if not all(0 <= index < self._length for index in found.values()):
            raise ValueError(f"its {MAP_KEY} map has indices of sentences that it does not have")
        return found


class AllennlpWriter(LayoutWriter):
    """Writes the `allennlp` layout."""

    has_map = True

    def __init__(self, file: h5py.File, options: FeatureOptions) -> None:
        self._file = file
        self._datasets = Datasets(options, self.layers_axis)
        self._keys = SentenceKeys() if options.sentence_keys else None
        self._map: dict[str, int] | None = {} if options.sentence_map and self.has_map and not self._keys else None
        self._count = 0

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        key = self._keys.key_of(sentence.line) if self._keys else str(self._count)
        self._datasets.write(self._file.id, key, states)
        if self._map is not None:
            self._map.pop(sentence.line, None)  # the order is that of the last index of each
            self._map[sentence.line] = self._count
        self._count += 1

    def finish(self) -> None:
        if self._map is not None:
            pairs = (b'%s: "%d"' % (msgspec.json.encode(line), index) for line, index in self._map.items())
            write_text(self._file, MAP_KEY, b"{" + b", ".join(pairs) + b"}")
