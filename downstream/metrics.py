"""Metrics: counts of right, gold and predicted items, precision, recall and F1."""

from collections import Counter
from collections.abc import Hashable, Iterable

import numpy as np


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """`numerator` / `denominator` in percent, 0 where the denominator is 0."""
    # Where nothing is divided, the zeros stay.
    zeros = np.zeros(np.shape(numerator))
    return 100 * np.divide(numerator, denominator, out=zeros, where=denominator != 0)


def count_items(gold: Iterable[Hashable], predicted: Iterable[Hashable]) -> np.ndarray:
    """float64 [3]: the number of right, of gold and of predicted items."""
    expected = Counter(gold)
    found = Counter(predicted)
    # An item that stands twice can be right twice.
    counts = [each.total() for each in (expected & found, expected, found)]
    return np.array(counts, dtype=np.float64)


def precision_recall_f1(counts: np.ndarray, what: str) -> dict[str, np.ndarray]:
    """The three metrics, in percent, each under its name after `what`: "entity F1" for
    "entity".

    Args:
        counts: [..., 3], the numbers of right, of gold and of predicted items.
        what: the name of an item.
    """
    right, gold, predicted = np.moveaxis(counts, -1, 0)
    return {
        f"{what} F1": ratio(2 * right, gold + predicted),
        f"{what} precision": ratio(right, predicted),
        f"{what} recall": ratio(right, gold),
    }
