"""Natural language inference (SNLI): whether a premise entails a hypothesis, contradicts it, or neither.

The model is ESIM with the hyper-parameters published for ELMo, the score accuracy.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from downstream.inputs.sentence import Sentence
from downstream.inputs.settings import SMALL_MIX_RATE
from downstream.metrics import ratio
from downstream.probe.settings import ReaderOptions
from downstream.probe.task import Task
from downstream.readers.sentence_pairs import SentencePair, read_sentence_pairs
from downstream.tasks.snli.model import SnliProbe, SnliSettings
from elmoc.settings import counted

LABELS = ("entailment", "neutral", "contradiction")


class SnliTask(Task[SentencePair, dict[str, float]]):
    def read(self, path: Path, options: ReaderOptions, *, training: bool) -> list[SentencePair]:
        """Read JSON lines or tab-separated text; pairs without a gold label are left out."""
        return read_sentence_pairs(path)

    def sentences(self, example: SentencePair) -> list[Sentence]:
        return [example.premise, example.hypothesis]

    def describe(self, examples: Sequence[SentencePair]) -> str:
        labels = Counter(example.label for example in examples)
        words = sum(len(sentence.words) for example in examples for sentence in self.sentences(example))
        counts = ", ".join(f"{labels[label]:,} {label}" for label in sorted(labels))
        return f"{counted(len(examples), 'pair')} ({counts}), {counted(words, 'word')}"

    def vocabulary(self, train: Sequence[SentencePair]) -> dict[str, Any]:
        """SNLI's three labels, or, where there are others, those of `train`."""
        found = {example.label for example in train}
        return {"labels": list(LABELS) if found <= set(LABELS) else sorted(found)}

    def count(self, example: SentencePair, prediction: dict[str, float]) -> np.ndarray:
        """[right, all] pairs."""
        return np.array([best_label(prediction) == example.label, 1], dtype=np.float64)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return {"accuracy": ratio(counts[..., 0], counts[..., 1])}

    def format_prediction(self, example: SentencePair, prediction: dict[str, float]) -> str:
        """JSON: the gold label and the sentences as in SNLI, the predicted label and all probabilities."""
        record = {
            "gold_label": example.label,
            "predicted_label": best_label(prediction),
            "probabilities": {label: round(value, 6) for label, value in prediction.items()},
            "sentence1": example.texts[0],
            "sentence2": example.texts[1],
        }
        return json.dumps(record, ensure_ascii=False) + "\n"


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
)

TASK = SnliTask(
    name="snli",
    metric="accuracy",
    unit="pairs",
    item="pairs",
    suffix=".jsonl",
    model=SnliProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        mix_rate=SMALL_MIX_RATE,
        learning_rate=1e-3,
        halve_on_plateau=False,  # seven epochs see no plateau, or one at different times
        decay=0.95,
        epochs=7,
        patience=3,
        projection_size=128,
        hidden_size=100,
        dropout=0.2,
        shortcut=True,  # with thousands of pairs, words teach what to align sooner than an LSTM's states do
    ),
)
