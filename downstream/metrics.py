"""Metrics: counts of right, gold and predicted items, precision, recall and F1."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """`numerator` / `denominator` in percent, 0 where the denominator is 0."""
    numerator = np.asarray(numerator, dtype=np.float64)
    denominator = np.asarray(denominator, dtype=np.float64)
    # Where nothing is divided, the zeros stay.
    zeros = np.zeros_like(numerator)
    return 100 * np.divide(numerator, denominator, out=zeros, where=denominator != 0)


def count_labels(
    gold: Iterable[tuple[Any, ...]], predicted: Iterable[tuple[Any, ...]]
) -> dict[str, np.ndarray]:
    """Label → float64 [3]: the number of right, of gold and of predicted items, which
    begin with their label.
    """
    expected = Counter(gold)
    found = Counter(predicted)
    counts: dict[str, np.ndarray] = {}
    # An item that stands twice can be right twice.
    for place, items in enumerate((expected & found, expected, found)):
        for item, times in items.items():
            counts.setdefault(item[0], np.zeros(3))[place] += times
    return counts


def precision_recall_f1(counts: np.ndarray, what: str) -> dict[str, np.ndarray]:
    """The three metrics, in percent, each under its name after `what`: "entity F1" for
    "entity".

    Args:
        counts: [..., 3], the numbers of right, of gold and of predicted items.
        what: the name of an item.
    """
    right, gold, predicted = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    return {
        f"{what} F1": ratio(2 * right, gold + predicted),
        f"{what} precision": ratio(right, predicted),
        f"{what} recall": ratio(right, gold),
    }


def label_table(counts: Mapping[str, np.ndarray]) -> str:
    """A line a label, most frequent first, of counts [3]: right, gold, predicted."""
    if not counts:
        return ""
    width = max(len(name) for name in counts)
    lines = [f"  {'':{width}}  precision  recall      F1    gold  predicted"]
    for name, row in sorted(counts.items(), key=lambda item: (-item[1][1], item[0])):
        f1, precision, recall = precision_recall_f1(row, "").values()
        scores = f"{precision:9.2f}  {recall:6.2f}  {f1:6.2f}"
        lines.append(f"  {name:{width}}  {scores}  {row[1]:6.0f}  {row[2]:9.0f}")
    return "\n".join(lines)
