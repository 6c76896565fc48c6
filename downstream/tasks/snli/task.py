"""Natural language inference (SNLI): does a premise entail a hypothesis, contradict it, or neither?

The model is ESIM with the hyper-parameters published for ELMo, the score accuracy.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import Sentence
from downstream.metrics import ratio
from downstream.probe.settings import TrainingSettings, dropout_field
from downstream.probe.task import Probe, Task
from downstream.readers.sentence_pairs import LONGEST, SentencePair, read_sentence_pairs
from downstream.tasks.snli.model import Esim
from elmoc.errors import InputError
from elmoc.files import atomic_path

LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True, kw_only=True)
class SnliSettings(TrainingSettings):
    """Hyper-parameters of the probe."""

    projection_size: int = field(
        metadata={
            "help": "units of a linear layer between the inputs and the first LSTM (0: there is none)",
            "least": 0,
        }
    )
    hidden_size: int = field(metadata={"help": "units of each layer; of the LSTMs, each direction"})
    dropout: float = dropout_field("dropout on the inputs of the LSTMs and around the last hidden layer")


class SnliProbe(Probe[SentencePair, dict[str, float]]):
    """ESIM on the inputs. A prediction is the probability of each label."""

    def __init__(
        self, *, inputs: ProbeInputs, labels: Sequence[str], projection_size: int, hidden_size: int, dropout: float
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.labels = list(labels)
        self._ids = {label: row for row, label in enumerate(labels)}
        self.model = Esim(
            input_size=inputs.size,
            projection_size=projection_size,
            hidden_size=hidden_size,
            dropout=dropout,
            labels=len(labels),
        )

    def logits(self, examples: Sequence[SentencePair]) -> Tensor:
        """float32 [B, labels]."""
        premises = self.inputs([example.premise for example in examples])
        hypotheses = self.inputs([example.hypothesis for example in examples])
        return self.model(*premises, *hypotheses)

    def loss(self, examples: Sequence[SentencePair]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        labels = torch.tensor([self._ids[example.label] for example in examples], device=logits.device)  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[SentencePair]) -> list[dict[str, float]]:
        """The probability of each label."""
        return [dict(zip(self.labels, row, strict=True)) for row in self.logits(examples).softmax(dim=1).tolist()]


class SnliTask(Task[SentencePair, dict[str, float]]):
    """Reader, model and metric of natural language inference."""

    def read(self, path: Path, options: argparse.Namespace, *, training: bool) -> list[SentencePair]:
        """Read JSON lines or tab-separated text; pairs without a gold label are left out."""
        return read_sentence_pairs(path)

    def sentences(self, example: SentencePair) -> list[Sentence]:
        """Premise and hypothesis."""
        return [example.premise, example.hypothesis]

    def describe(self, examples: Sequence[SentencePair]) -> str:
        """Counts of pairs, labels and words, and of what was left out."""
        labels = Counter(example.label for example in examples)
        words = sum(len(sentence.words) for example in examples for sentence in self.sentences(example))
        undecided = sum(example.undecided for example in examples)
        shortened = sum(example.shortened for example in examples)
        counts = ", ".join(f"{labels[label]:,} {label}" for label in sorted(labels))
        text = f"{len(examples):,} pairs ({counts}), {words:,} words; left out for want of a gold label: {undecided:,}"
        return text + (f"; sentences cut to {LONGEST} words: {shortened}" if shortened else "")

    def vocabulary(self, train: Sequence[SentencePair]) -> dict[str, Any]:
        """SNLI's three labels, or, where there are others, those of `train`."""
        found = {example.label for example in train}
        if found <= set(LABELS):
            return {"labels": list(LABELS)}
        if len(found) == 1:
            raise InputError(f"all pairs of the training data have the label {found.pop()!r}: two labels are needed")
        return {"labels": sorted(found)}

    def build(
        self, *, vocabulary: dict[str, Any], inputs: ProbeInputs, settings: TrainingSettings
    ) -> Probe[SentencePair, dict[str, float]]:
        """ESIM for the labels of the vocabulary."""
        assert isinstance(settings, SnliSettings)
        return SnliProbe(
            inputs=inputs,
            labels=vocabulary["labels"],
            projection_size=settings.projection_size,
            hidden_size=settings.hidden_size,
            dropout=settings.dropout,
        )

    def count(self, example: SentencePair, prediction: dict[str, float]) -> np.ndarray:
        """[right, all] pairs."""
        return np.array([best_label(prediction) == example.label, 1], dtype=np.float64)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Accuracy in percent."""
        return {"accuracy": ratio(counts[..., 0], counts[..., 1])}

    def details(self, examples: Sequence[SentencePair], predictions: Sequence[dict[str, float]]) -> str:
        """A line a gold label: its accuracy, and how often each label was predicted."""
        counts = Counter((example.label, best_label(row)) for example, row in zip(examples, predictions, strict=True))
        columns = list(predictions[0]) if predictions else []
        rows = [*columns, *sorted({gold for gold, _ in counts} - set(columns))]
        width = max(len(label) for label in ("gold", *rows))
        lines = [f"  {'gold':{width}}  accuracy  " + "  ".join(f"{label:>7}" for label in columns) + "  (predicted)"]
        for gold in rows:
            row = [counts[gold, label] for label in columns]
            accuracy = float(ratio(np.array(counts[gold, gold]), np.array(sum(row))))
            cells = "  ".join(f"{count:{max(7, len(label))},}" for count, label in zip(row, columns, strict=True))
            lines.append(f"  {gold:{width}}  {accuracy:8.2f}  {cells}")
        return "\n".join(lines)

    def write_predictions(
        self, path: Path, examples: Sequence[SentencePair], predictions: Sequence[dict[str, float]]
    ) -> None:
        """JSON lines: the gold label and the sentences as in SNLI, the predicted label and all probabilities."""
        with atomic_path(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
            for example, prediction in zip(examples, predictions, strict=True):
                record = {
                    "gold_label": example.label,
                    "predicted_label": best_label(prediction),
                    "probabilities": {label: round(value, 6) for label, value in prediction.items()},
                    "sentence1": example.texts[0],
                    "sentence2": example.texts[1],
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def best_label(probabilities: dict[str, float]) -> str:
    """The most probable label, the first of several."""
    return max(probabilities, key=lambda label: probabilities[label])


PUBLISHED = SnliSettings(
    learning_rate=4e-4,
    halve_on_plateau=True,
    gradient_norm=10.0,
    batch_size=32,
    epochs=75,
    patience=5,
    projection_size=0,
    hidden_size=300,
    dropout=0.5,
)

TASK = SnliTask(
    name="snli",
    metric="accuracy",
    unit="pairs",
    item="pairs",
    suffix=".jsonl",
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        learning_rate=1e-3,
        halve_on_plateau=False,  # seven epochs see no plateau, or one at different times
        decay=0.95,
        epochs=7,
        patience=3,
        projection_size=128,
        hidden_size=100,
        dropout=0.2,
    ),
)
