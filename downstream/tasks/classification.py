"""Classification: the common part of tasks that give each example one label."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from downstream.metrics import ratio
from downstream.probe.task import Example, Probe, Task, require_numbers

# The probability of each label.
Probabilities = dict[Any, float]


class Classifier(Probe[Example, Probabilities]):
    """A probe that gives each example a probability of each label.

    An example's own label is its attribute `label`.

    labels: all of them, in the order of the scores.
    """

    labels: Sequence[Any]

    @abstractmethod
    def logits(self, examples: Sequence[Example]) -> Tensor:
        """float32 [B, labels]: scores before softmax."""

    def loss(self, examples: Sequence[Any]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        gold = [self.labels.index(example.label) for example in examples]
        labels = torch.tensor(gold, device=logits.device)  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[Example]) -> list[Probabilities]:
        """The probability of each label."""
        rows = require_numbers(self.logits(examples)).softmax(dim=1).tolist()
        return [dict(zip(self.labels, row, strict=True)) for row in rows]


class ClassificationTask(Task[Example, Probabilities]):
    """A task that is scored by accuracy; predictions are written as JSON lines."""

    @abstractmethod
    def record(
        self, example: Example, best: Any, probabilities: Probabilities
    ) -> dict[str, Any]:
        """The JSON object that is written about an example.

        Args:
            example: with its gold label.
            best: the most probable label.
            probabilities: of all labels, rounded.
        """

    def labels(self, example: Any) -> Sequence[str]:
        return [str(example.label)]

    def count(self, example: Any, prediction: Probabilities) -> np.ndarray:
        """float64 [2]: 1 if the prediction is right, else 0; and 1 for the example."""
        # A label that the training data lacked is never predicted, and counts as wrong.
        return np.array([best_label(prediction) == example.label, 1], dtype=np.float64)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return {self.metric: ratio(counts[..., 0], counts[..., 1])}

    def format_prediction(self, example: Example, prediction: Probabilities) -> str:
        # A float32 has no more digits than these.
        rounded = {label: round(value, 6) for label, value in prediction.items()}
        record = self.record(example, best_label(prediction), rounded)
        return json.dumps(record, ensure_ascii=False) + "\n"


def best_label(probabilities: Probabilities) -> Any:
    """The most probable label; the first one of equal ones."""
    return max(probabilities, key=probabilities.__getitem__)
