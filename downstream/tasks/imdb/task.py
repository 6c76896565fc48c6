"""Sentiment of film reviews in two classes (IMDB, Maas et al. 2011): is a review
positive or negative?

The model is that by which Shu and Nakayama (2018, Section 5.2) compare compressed word
vectors: one LSTM of 150 units over the first 400 words of a review, and a softmax of
its last state.
"""

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import torch
from msgspec import Meta
from torch import Tensor

from downstream.readers.label_sets import TWO_CLASSES
from downstream.settings import (
    SMALL_INPUTS,
    ReaderOptions,
    Size,
    TrainingSettings,
)
from downstream.tasks.sst5.task import Phrase, PhraseTask, Sst5Probe, read_phrases
from elmoc.text.tokenizer import sentence_splitter, tokenise_paragraph


@dataclass(frozen=True, kw_only=True)
class ImdbReaderOptions(ReaderOptions):
    """How much of a review is read."""

    words: Annotated[
        int, Meta(ge=1, le=100_000, description="words of a review that are read")
    ] = 400


@dataclass(frozen=True, kw_only=True)
class ImdbSettings(TrainingSettings):
    """Hyper-parameters of the probe."""

    hidden_size: Annotated[Size, Meta(description="units of the LSTM")] = 150


class LastStateClassifier(torch.nn.Module):
    """An LSTM, and a linear function of its state after the last word."""

    def __init__(self, *, input_size: int, settings: ImdbSettings) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(input_size, settings.hidden_size, batch_first=True)
        self.output = torch.nn.Linear(settings.hidden_size, len(TWO_CLASSES.names))

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] → scores of the classes before softmax, [B, 2]."""
        # Padding comes after the words, and cannot change their states.
        states, _ = self.lstm(x)  # [B, T, H]
        return self.output(states[torch.arange(len(x)), lengths - 1])


class ImdbProbe(Sst5Probe):
    """Puts a review into one of the two classes."""

    labels = range(len(TWO_CLASSES.names))
    network = LastStateClassifier


class ImdbTask(PhraseTask):
    def read(
        self, path: Path, options: ImdbReaderOptions, *, training: bool
    ) -> list[Phrase]:
        """Read labelled rows with raw texts (with `<br />`): each review is one
        phrase.
        """
        split = sentence_splitter("")

        def first_words(review: str) -> list[str]:
            sentences = tokenise_paragraph(review.replace("<br />", " "), split)
            # Only the first words are read (Shu and Nakayama 2018, Section 5.2).
            return list(chain.from_iterable(sentences))[: options.words]

        return read_phrases(path, TWO_CLASSES, first_words)


# A fixed rate and fifteen epochs, without clipping. The paper does not tell the batch.
# It keeps the epoch of the lowest loss, not of the best accuracy, and reads words in
# lower case, of which features of context are not made.
PUBLISHED = ImdbSettings(learning_rate=1e-4, batch_size=64, epochs=15, patience=15)

TASK = ImdbTask(
    name="imdb",
    metric="accuracy",
    unit="reviews",
    item="reviews",
    suffix=".jsonl",
    reader=ImdbReaderOptions(),
    model=ImdbProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        learning_rate=1e-3,
        gradient_norm=5.0,
        **SMALL_INPUTS,
        batch_size=32,
        decay=0.95,
        epochs=5,
        patience=3,
    ),
)
