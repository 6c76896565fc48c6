"""The `allennlp` layout of feature files: that of the `allennlp elmo` command.

One contiguous dataset of float32 (or float16) a sentence, its key the line number as a string from "0":
`(L + 1, n, 2P)` for all layers, `(n, 2P)` for one. A dataset `sentence_to_index`, shape (1,), holds one JSON object
{stripped line: "index"} (of duplicate lines the last index). Everything else is in the attributes of the root, so that
iterating over the keys finds sentences and the map alone.
"""

import json
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.files.hdf5 import CheckedFile
from elmoc.files.records import parse_json

MAP_KEY = "sentence_to_index"


class AllennlpReader:
    """The `LayoutReader`."""

    def __init__(self, file: CheckedFile) -> None:
        self._file = file
        with file.damage(
            'has no dataset "0" of numbers, (layers, words, width) or (words, width): it is not a feature file in the '
            "allennlp layout"
        ):
            self.first = file["0"]
            shape, dtype = self.first.shape, self.first.dtype
            if dtype.kind != "f" or len(shape) not in (2, 3) or 0 in (shape[0], shape[-1])[3 - len(shape) :]:
                raise ValueError(f"it has the shape {shape} and the type {dtype}")
        self.layers: int = shape[0] if len(shape) == 3 else 1
        self.width: int = shape[-1]
        self.has_map = MAP_KEY in file
        self._length = len(file) - self.has_map

    def __len__(self) -> int:
        return self._length

    def view(self, index: int, dataset: Callable[[str], np.ndarray]) -> np.ndarray:
        return dataset(str(index))

    def sentence_map(self) -> dict[str, int]:
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
        sentences = parse_json(content, where=f"{path}: the {MAP_KEY} map", advice="write the file again")
        if not isinstance(sentences, dict):
            raise InputError(
                f"{path}: the {MAP_KEY} map is not a JSON object of sentences and their indices: write the file again"
            )
        return {(words := " ".join(line.split())): self._checked(index, words) for line, index in sentences.items()}

    def _checked(self, index: Any, words: str) -> int:
        text = str(index)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < self._length):
            raise InputError(
                f'{self._file.path}: the {MAP_KEY} map gives the sentence "{shortened(words)}" the index '
                f"{shortened(json.dumps(index))}, but the file has 0 to {self._length - 1}: write it again"
            )
        return int(text)


class AllennlpWriter:
    """The `LayoutWriter`."""

    def __init__(self, file: h5py.File, sentence_map: bool) -> None:
        self._file = file
        self._sentences: dict[str, str] | None = {} if sentence_map else None
        self._count = 0

    def add(self, line: str, states: np.ndarray) -> None:
        self._file.create_dataset(str(self._count), data=states)
        if self._sentences is not None:
            self._sentences[line.strip()] = str(self._count)
        self._count += 1

    def finish(self) -> None:
        if self._sentences is not None:
            dataset = self._file.create_dataset(MAP_KEY, (1,), dtype=h5py.string_dtype("utf-8"))
            dataset[0] = json.dumps(self._sentences, ensure_ascii=False)
