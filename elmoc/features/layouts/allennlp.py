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

from elmoc.errors import InputError

MAP_KEY = "sentence_to_index"


class AllennlpReader:
    """The `LayoutReader`."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        first = file.get("0")
        if not isinstance(first, h5py.Dataset) or first.dtype.kind != "f" or first.ndim not in (2, 3):
            raise InputError(
                f'{file.filename} has no dataset "0" of numbers, (layers, words, width) or (words, width): it is not a '
                "feature file in the allennlp layout"
            )
        self.first = first
        self.layers: int = first.shape[0] if first.ndim == 3 else 1
        self.width: int = first.shape[-1]
        self._length = len(file) - (MAP_KEY in file)

    def __len__(self) -> int:
        return self._length

    def view(self, index: int, dataset: Callable[[str], np.ndarray]) -> np.ndarray:
        return dataset(str(index))

    def sentence_map(self) -> dict[str, int]:
        path = self._file.filename
        if MAP_KEY not in self._file:
            raise InputError(
                f"{path} has no {MAP_KEY} map, by which sentences are found: write it again without --forget-sentences"
            )
        try:
            sentences = json.loads(self._file[MAP_KEY][0])
        except (ValueError, TypeError, IndexError, OSError) as error:
            raise InputError(f"{path}: the {MAP_KEY} map is damaged ({error}): write the file again") from None
        if not isinstance(sentences, dict):
            raise InputError(
                f"{path}: the {MAP_KEY} map is not a JSON object of sentences and their indices: write the file again"
            )
        return {(words := " ".join(line.split())): self._checked(index, words) for line, index in sentences.items()}

    def _checked(self, index: Any, words: str) -> int:
        text = str(index)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < self._length):
            shown = words if len(words) <= 80 else words[:79] + "…"
            raise InputError(
                f'{self._file.filename}: the {MAP_KEY} map gives the sentence "{shown}" the index {json.dumps(index)}, '
                f"but the file has 0 to {self._length - 1}: write it again"
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
