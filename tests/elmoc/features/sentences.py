"""Sentences of feature files, and arrays in the place of their layer states."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.features.layouts.interface import FeatureShape, Sentence
from elmoc.features.writer import write_features

LINES = ["The cat sat .", "  a / b/c  ", "Zürich\u00a0— naïve 😀", "The cat sat .", "//"]


def states_of(index: int, tokens: int, layers: int = 3, width: int = 4) -> np.ndarray:
    return np.random.default_rng(index).standard_normal((layers, tokens, width)).astype(np.float32)


def shape_of(states: np.ndarray, words: int | None = None) -> FeatureShape:
    """The form of a file of sentences like this one."""
    layers = 1 if states.ndim == 2 else len(states)
    dtype = str(states.dtype)
    return FeatureShape(layers=layers, width=states.shape[-1], dtype=dtype, single=states.ndim == 2, words=words)


def write_sentences(
    path: Path, attributes: dict[str, Any], sentences: Sequence[tuple[str, np.ndarray]], **options: Any
) -> None:
    """A feature file of lines and their states; each line has as many words as its states."""
    with write_features(path, attributes, shape=shape_of(sentences[0][1]), **options) as writer:
        for line, states in sentences:
            writer.add(Sentence(line.split(), line), states)


def write_lines(path: Path) -> Path:
    """A feature file of `LINES`."""
    sentences = [(line, states_of(index, len(line.split()))) for index, line in enumerate(LINES)]
    write_sentences(path, {"model": "abc", "layers": [0, 1, 2], "version": 1}, sentences)
    return path
