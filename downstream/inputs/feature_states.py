"""Layer states of a feature file: the sentences of a run are found and checked once, and read in place."""

import os
import warnings
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.sentence import Sentence
from elmoc.errors import InputError, shortened
from elmoc.features.reader import FeatureFile
from elmoc.progress import progress_bar


class FeatureStates:
    """Layer states that stay in their feature file, which is memory-mapped.

    Every sentence is looked for and its shape checked at once, so that a run cannot break off later. Raises
    `InputError`, with the sentence and its place in the task's data, when one is not in the file or has another number
    of tokens.
    """

    def __init__(self, path: Path, *, sentences: Sequence[Sentence]) -> None:
        self._file = FeatureFile(path)
        self.layers = self._file.layers
        self.names = self._file.layer_names
        self.width = self._file.width
        self._places: dict[tuple[str, ...], np.ndarray | int] = {}
        """A view, or the index of a sentence that has to be read each time."""
        distinct = {sentence.words: sentence for sentence in sentences}
        for sentence in progress_bar(
            iterable=distinct.values(), desc="features", unit=" sentences", leave=False, delay=2
        ):
            index = self._file.find(sentence.words)
            if index is None:
                raise self._unusable(sentence, "is not in the file")
            view = self._file.view(index)
            shape = (1, *view.shape) if view.ndim == 2 else view.shape
            if shape != (self.layers, len(sentence.words), self.width):
                expected = f"{self.layers} × {len(sentence.words)} × {self.width} (layers × tokens × width)"
                raise self._unusable(sentence, f"has the shape {' × '.join(map(str, shape))}, not {expected}")
            self._places[sentence.words] = index if view.flags.owndata or not view.dtype.isnative else view

    def lookup(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers, n, width] for each sentence: views of the file where it holds float32."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return [self._read(self._places[sentence.words]) for sentence in sentences]

    def describe(self) -> dict[str, Any]:
        """The file and what it says of its numbers: the fingerprints of the model and its word vectors, the layers.

        Of one that names no model also its size, and the time it was changed.
        """
        path = os.path.realpath(self._file.path)
        attributes = {name: _json_value(value) for name, value in self._file.attributes.items()}
        if not attributes.keys() & {"model", "model_fingerprint"}:  # a foreign file, which names no model
            found = os.stat(path)
            attributes |= {"file_size": found.st_size, "file_time": found.st_mtime_ns}
        return {"file": path, **attributes}

    def _read(self, place: np.ndarray | int) -> Tensor:
        array = self._file[place].astype(np.float32) if isinstance(place, int) else place
        states = torch.from_numpy(array).float()
        return states.unsqueeze(0) if states.ndim == 2 else states

    def _unusable(self, sentence: Sentence, what: str) -> InputError:
        text = shortened(" ".join(sentence.words))
        return InputError(
            f'{self._file.path}: the sentence "{text}" ({sentence.file}, '
            f"line {sentence.line}) {what}: write the sentences with `python -m downstream sentences TASK FILES…` and "
            "dump the features of that text with `elmoc dump-features`"
        )


def _json_value(value: Any) -> Any:
    """An attribute of a feature file as JSON can hold it; foreign files have bytes among them."""
    if isinstance(value, np.ndarray) and value.ndim > 2:
        return str(value)
    if isinstance(value, (np.generic, np.ndarray)):
        return _json_value(value.tolist())
    if isinstance(value, list):
        return [_json_value(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, (str, int)) or (isinstance(value, float) and isfinite(value)) else str(value)
