"""Precision, recall and F1 against values worked out by hand."""

import numpy as np
import pytest
from downstream.metrics import precision_recall_f1, ratio


def test_nothing_gold_or_predicted_is_zero_and_rows_are_apart() -> None:
    metrics = precision_recall_f1(np.array([[0, 0, 0], [0, 2, 0], [0, 0, 2], [2, 2, 4]]), "x")
    assert metrics["x F1"].tolist() == pytest.approx([0, 0, 0, 200 / 3])
    assert metrics["x recall"].tolist() == [0, 0, 0, 100]
    assert metrics["x precision"].tolist() == [0, 0, 0, 50]
    assert ratio(np.array([1.0, 1.0]), np.array([0.0, 4.0])).tolist() == [0, 25]
