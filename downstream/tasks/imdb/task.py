"""Sentiment of film reviews in two classes (IMDB, Maas et al. 2011): is a review positive or negative?

The model is that by which Shu and Nakayama (2018, Section 5.2) compare compressed word vectors: one LSTM of 150 units
over the first 400 words of a review, and a softmax of its last state.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import torch
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import Sentence, make_sentence
from downstream.metrics import ratio
from downstream.probe.task import Probe, Task, require_numbers
from downstream.settings import SMALL_MIX_RATE, ReaderOptions, TrainingSettings, size_setting
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines
from elmoc.process import progress_bar
from elmoc.settings import counted, setting
from elmoc.tokenizer import sentence_splitter, tokenise_paragraph

LABELS = ("neg", "pos")


@dataclass(frozen=True)
class Review:
    """A review's first words, as one sentence, and whether it is positive (1) or negative (0)."""

    sentence: Sentence
    label: int


@dataclass(frozen=True, kw_only=True)
class ImdbReaderOptions(ReaderOptions):
    """How much of a review is read."""

    words: int = setting(400, help="words of a review that are read", least=1, most=100_000)


@dataclass(frozen=True, kw_only=True)
class ImdbSettings(TrainingSettings):
    """Hyper-parameters of the probe."""

    hidden_size: int = size_setting(150, "units of the LSTM")


class ImdbProbe(Probe[Review, float]):
    """An LSTM over a review, and a softmax of its state after the last word. A prediction is P(positive)."""

    def __init__(self, *, inputs: ProbeInputs, settings: ImdbSettings) -> None:
        super().__init__()
        self.inputs = inputs
        self.lstm = torch.nn.LSTM(inputs.size, settings.hidden_size, batch_first=True)
        self.output = torch.nn.Linear(settings.hidden_size, len(LABELS))

    def logits(self, examples: Sequence[Review]) -> Tensor:
        """float32 [B, 2]."""
        x, lengths = self.inputs([example.sentence for example in examples])
        states, _ = self.lstm(x)  # [B, T, H]; padding comes after the words, and cannot change their states
        last: Tensor = states[torch.arange(len(examples)), lengths - 1]
        logits: Tensor = self.output(last)
        return logits

    def loss(self, examples: Sequence[Review]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        labels = torch.tensor([example.label for example in examples], device=logits.device)  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[Review]) -> list[float]:
        """The probability that each review is positive."""
        return require_numbers(self.logits(examples)).softmax(dim=1)[:, 1].tolist()


class ImdbTask(Task[Review, float]):
    def read(self, path: Path, options: ReaderOptions, *, training: bool) -> list[Review]:
        """Read JSON lines with `text` (raw, with `<br />`) and `label` (`pos` or `neg`)."""
        assert isinstance(options, ImdbReaderOptions)
        split = sentence_splitter("")
        reviews = []
        for number, line in enumerate(progress_bar(iterable=read_lines(path), desc=path.name, leave=False, delay=2), 1):
            with reading(f"{path}, line {number}"):
                record = msgspec.json.decode(line)
                sentences = tokenise_paragraph(record["text"].replace("<br />", " "), split)
                words = [word for sentence in sentences for word in sentence][: options.words]
                if not words:
                    raise InputError("a review without words")
                label = LABELS.index(record["label"])
            reviews.append(Review(make_sentence(words, file=path, line=number), label))
        return reviews

    def describe(self, examples: Sequence[Review]) -> str:
        words = sum(len(example.sentence.words) for example in examples)
        positive = sum(example.label for example in examples)
        return f"{counted(len(examples), 'review')}, {positive:,} of them positive, {counted(words, 'word')}"

    def count(self, example: Review, prediction: float) -> np.ndarray:
        """[right, all] reviews."""
        return np.array([(prediction > 0.5) == example.label, 1], dtype=np.float64)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return {self.metric: ratio(counts[..., 0], counts[..., 1])}

    def format_prediction(self, example: Review, prediction: float) -> str:
        """JSON: the gold label, the probability that it is positive, and the words that were read."""
        record = {"gold": LABELS[example.label], "positive": round(prediction, 6)}
        return json.dumps(record | {"text": " ".join(example.sentence.words)}, ensure_ascii=False) + "\n"


# Batch size and learning rate are not in the paper.
PUBLISHED = ImdbSettings(learning_rate=1e-3, gradient_norm=5.0, batch_size=64, epochs=15, patience=15)

TASK = ImdbTask(
    name="imdb",
    metric="accuracy",
    unit="reviews",
    item="reviews",
    suffix=".jsonl",
    reader=ImdbReaderOptions(),
    model=ImdbProbe,
    published=PUBLISHED,
    small=replace(PUBLISHED, mix_rate=SMALL_MIX_RATE, batch_size=32, decay=0.95, epochs=5, patience=3),
)
