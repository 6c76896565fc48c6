"""Sentences of feature files, and arrays in the place of their layer states."""

import numpy as np

LINES = ["The cat sat .", "  a / b/c  ", "Zürich\u00a0— naïve 😀", "The cat sat .", "//"]


def states_of(index: int, tokens: int, layers: int = 3, width: int = 4) -> np.ndarray:
    return np.random.default_rng(index).standard_normal((layers, tokens, width)).astype(np.float32)
