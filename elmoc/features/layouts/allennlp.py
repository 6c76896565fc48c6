"""The `allennlp` layout of feature files: that of the `allennlp elmo` command.

One contiguous dataset of float32 (or float16) a sentence, its key the line number as a string from "0":
`(L + 1, n, 2P)` for all layers, `(n, 2P)` for one. A dataset `sentence_to_index`, shape (1,), holds one JSON object
{stripped line: "index"} (of duplicate lines the last index). Everything else is in the attributes of the root, so that
iterating over the keys finds sentences and the map alone.

With sentence keys, the key is the sentence (see `keys`), there is no map, and the order of the lines is that in which
the file tracks its datasets; of a file without such an order it is that of the keys.
"""

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import h5py
import msgspec
import numpy as np
import xxhash

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.datasets import Datasets, Form, Slab
from elmoc.features.layouts.interface import LayoutOptions, Rows
from elmoc.features.layouts.keys import foreign_line_of, in_order, key_of, line_of
from elmoc.features.layouts.sentence import Sentence
from elmoc.features.unfinished.notes import Notes
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.records import parse_json

MAP_KEY = "sentence_to_index"


class AllennlpReader:
    """The `LayoutReader`."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self._is_foreign = "layout" not in attributes
        has_no_numbers = self._is_foreign and "0" not in file and MAP_KEY not in file and len(file) > 0
        self._has_keys = bool(attributes.get("sentence_keys", has_no_numbers))
        self._length = len(file) - (MAP_KEY in file and not self._has_keys)
        with file.damage(
            'has no dataset "0" of numbers, (layers, words, width) or (words, width): it is not a feature file in the '
            "allennlp layout"
        ):
            self.first = file[self._key(0)]
            shape, dtype = self.first.shape, self.first.dtype
            if dtype.kind != "f" or len(shape) not in (2, 3) or 0 in (shape[0], shape[-1])[3 - len(shape) :]:
                raise ValueError(f"it has the shape {shape} and the type {dtype}")
        self.layers: int = shape[0] if len(shape) == 3 else 1
        self.width: int = shape[-1]
        self.has_map = self._has_keys or MAP_KEY in file

    def __len__(self) -> int:
        return self._length

    def view(self, index: int, rows: Rows) -> np.ndarray:
        return rows(self._key(index))

    def words(self, index: int) -> int:
        shape = self._file[self._key(index)].shape
        if len(shape or ()) < 2:
            raise ValueError(f"it has the shape {shape}")
        return int(shape[-2])

    def _key(self, index: int) -> str:
        return self._keys[index] if self._has_keys else str(index)

    @cached_property
    def _keys(self) -> list[str]:
        return in_order(self._file)

    def lines(self) -> dict[str, int]:
        if self._has_keys:
            text_of = foreign_line_of if self._is_foreign else line_of
            return {text_of(key): index for index, key in enumerate(self._keys)}
        path = self._file.path
        if not self.has_map:
            raise InputError(
                f"{path} has no {MAP_KEY} map, by which sentences are found: write it again without --forget-sentences"
            )
        with self._file.damage(f"has a {MAP_KEY} map that is damaged"):
            dataset = self._file[MAP_KEY]
            if h5py.check_string_dtype(dataset.dtype) is None:
                raise ValueError(f"its type is {dataset.dtype}")
            content = dataset[0]
        where = f"{path}: the {MAP_KEY} map"
        sentences = parse_json(content, where=where)
        if not isinstance(sentences, dict):
            raise InputError(f"{where} is not a JSON object of sentences and their indices: write the file again")
        return {line: self._checked(index, line) for line, index in sentences.items()}

    def _checked(self, index: Any, line: str) -> int:
        text = str(index)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < self._length):
            raise InputError(
                f'{self._file.path}: the {MAP_KEY} map gives the sentence "{shortened(line)}" the index '
                f"{shortened(json.dumps(index))}, but the file has 0 to {self._length - 1}: write it again"
            )
        return int(text)

    def documents(self) -> None:
        return None


class AllennlpWriter:
    """The `LayoutWriter`."""

    _layers_axis: int | None = None

    def __init__(
        self, file: h5py.File, options: LayoutOptions, notes: Notes, memory: dict[str, int | str] | None
    ) -> None:
        self._file, self._options, self._notes = file, options, notes
        self._form = Form(options.shape, self._layers_axis)
        self._datasets = Datasets(self._form, compress=options.compress)
        self._count = int(memory["sentences"]) if memory else 0

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        self._datasets.write(self._file.id, self._next_key(sentence), states)

    def start(self, sentence: Sentence) -> Slab:
        words = len(sentence.tokens)
        return Slab(self._datasets.create(self._file.id, self._next_key(sentence), words), self._form, words)

    def _next_key(self, sentence: Sentence) -> str:
        index, self._count = self._count, self._count + 1
        if self._options.sentence_keys:
            return key_of(sentence.line, lambda key: self._file.id.links.exists(key.encode()))
        if self._has_map:
            self._notes.add(sentence.line)
        return str(index)

    @property
    def _has_map(self) -> bool:
        return self._options.sentence_map and not self._options.sentence_keys

    def memory(self) -> dict[str, int | str]:
        return {"sentences": self._count}

    def rewritten(self) -> range:
        return range(0)

    def finish(self) -> None:
        if self._has_map:
            dataset = self._file.create_dataset(MAP_KEY, (1,), dtype=h5py.string_dtype("utf-8"))
            dataset[0] = _map_of(self._notes, self._count)


def _map_of(lines: Notes, count: int) -> bytes:
    """The JSON object {line: "index"}, of lines with the same text the last index; holds no line in memory but those.

    Which line is the last of its text is found by hashes of 128 bits.
    """
    hashes = np.empty((count, 2), dtype="<u8")
    for index, line in enumerate(lines):
        hashes[index] = np.frombuffer(xxhash.xxh3_128_digest(line.encode()), dtype="<u8")
    order = np.lexsort((np.arange(count), hashes[:, 0], hashes[:, 1]))
    is_last = np.ones(count, dtype=bool)
    is_last[order[:-1]] = (hashes[order[1:]] != hashes[order[:-1]]).any(axis=1)
    return encoded_map((line, index) for index, line in enumerate(lines) if is_last[index])


def encoded_map(lines: Iterable[tuple[str, int]]) -> bytes:
    """The JSON object {line: "index"}."""
    pieces = bytearray(b"{")
    for line, index in lines:
        pieces += b'%s%s: "%d"' % (b", " if len(pieces) > 1 else b"", msgspec.json.encode(line), index)
    return bytes(pieces + b"}")
