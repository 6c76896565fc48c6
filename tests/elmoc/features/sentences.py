"""Sentences of feature files, and arrays in the place of their layer states."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from elmoc.__main__ import main
from elmoc.features.reader import LAYOUTS, FeatureFile

from elmoc.features.layouts import Entry, FeatureShape

LINES = ["The cat sat .", "  a / b/c  ", "Zürich\u00a0— naïve 😀", "The cat sat .", "//"]


def states_of(index: int, tokens: int, layers: int = 3, width: int = 4) -> np.ndarray:
    return np.random.default_rng(index).standard_normal((layers, tokens, width)).astype(np.float32)


def shape_of(states: np.ndarray, words: int | None = None) -> FeatureShape:
    """The form of a file of sentences like this one."""
    layers = 1 if states.ndim == 2 else len(states)
    dtype = str(states.dtype)
    return FeatureShape(layers=layers, width=states.shape[-1], dtype=dtype, single=states.ndim == 2, words=words)


def write_features(path: Path, attributes: dict[str, Any], *, layout: str = "allennlp", **options: Any) -> Any:
    """A new feature file of a layout, as `LayoutWriter.open` opens it."""
    return LAYOUTS[layout].open(path, attributes, **options)


def write_sentences(
    path: Path, attributes: dict[str, Any], sentences: Sequence[tuple[str, np.ndarray]], **options: Any
) -> None:
    """A feature file of lines and their states; each line has as many words as its states."""
    with write_features(path, attributes, shape=shape_of(sentences[0][1]), **options) as writer:
        for line, states in sentences:
            writer.add(Entry(len(line.split()), line.strip()), states)


def write_lines(path: Path) -> Path:
    """A feature file of `LINES`."""
    sentences = [(line, states_of(index, len(line.split()))) for index, line in enumerate(LINES)]
    write_sentences(path, {"model": "abc", "layers": [0, 1, 2], "version": 1}, sentences)
    return path


def stored(path: Path) -> tuple[Any, dict[str, Any]]:
    """All that is in a file, in its order, but for its command line."""
    found: list[Any] = []
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                found.append((name, item.dtype, item[()].tolist())) if isinstance(item, h5py.Dataset) else None
            )
        )
        attributes = {name: np.asarray(value).tolist() for name, value in file.attrs.items()}
    return found, {name: value for name, value in attributes.items() if name != "command_line"}


def dumped(*arguments: object) -> list[np.ndarray]:
    """What a dump with these arguments (model, sentences, output, options) holds, sentence by sentence."""
    assert main(["dump-features", *map(str, arguments), "--precision", "float32"]) == 0
    with FeatureFile(str(arguments[2])) as file:
        return list(file)
