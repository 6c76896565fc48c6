"""Named entity recognition: which spans of a sentence are names, and of what type.

The model is the biLSTM-CRF of Peters et al. (2018): inputs, and vectors of words and
spellings that it trains → dropout → biLSTM → dropout → CRF over BIOUL tags, with the
hyper-parameters published for ELMo on CoNLL-2003. Its words begin at random, not as
GloVe's. The score is conlleval's entity F1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from msgspec import Meta
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence
from downstream.metrics import count_items, precision_recall_f1
from downstream.modules.lstm import BiLstm
from downstream.modules.tagging import Tags
from downstream.modules.trained_words import TrainedWords, frequent
from downstream.probe.task import Probe, Task, require_numbers
from downstream.readers.columns import (
    bio_spans,
    check_words,
    find_words,
    read_columns,
)
from downstream.readers.rows import object_rows
from downstream.readers.tagged_rows import read_tagged_rows
from downstream.settings import (
    MOST_UNITS,
    SMALL_INPUTS,
    Dropout,
    ReaderOptions,
    Size,
    TrainingSettings,
)
from downstream.tasks.ner.tags import TAG, bio_to_bioul, read_tags, to_bio
from elmoc.errors import InputError, shortened, warn


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence and its BIO tags."""

    sentence: TaskSentence
    tags: list[str]


@dataclass(frozen=True, kw_only=True)
class NerSettings(TrainingSettings):
    """Hyper-parameters of the tagger."""

    word_size: Annotated[
        int,
        Meta(
            ge=0,
            le=MOST_UNITS,
            description="numbers of a vector of each lower-cased word, which is "
            "trained with a CNN over its characters (0: neither)",
        ),
    ] = 50
    filters: Annotated[Size, Meta(description="of the CNN over characters")] = 128
    hidden_size: Annotated[
        Size, Meta(description="units of the LSTM, each direction")
    ] = 200
    layers: Annotated[int, Meta(ge=1, le=100, description="layers of the LSTM")] = 2
    dropout: Annotated[
        Dropout, Meta(description="dropout before, between and after the LSTM's layers")
    ] = 0.5


class NerProbe(Probe[TaggedSentence, list[str]]):
    """biLSTM-CRF tagger. Predictions are BIO tags.

    Args:
        inputs: of a batch of sentences.
        settings: the hyper-parameters.
        types: of the entities that it can predict.
        words: lower-cased, that get a vector of their own.
        characters: that get one.
    """

    def __init__(
        self,
        *,
        inputs: ProbeInputs,
        settings: NerSettings,
        types: Sequence[str],
        words: Sequence[str],
        characters: Sequence[str],
    ) -> None:
        super().__init__()
        self.inputs = inputs
        # B begins an entity, I is inside, L is its last word, U its only one.
        self.tags = Tags(types, "BILU")
        self.dropout = torch.nn.Dropout(settings.dropout)
        input_size = inputs.size
        self.words: TrainedWords | None = None
        if settings.word_size:
            self.words = TrainedWords(
                words,
                characters,
                word_size=settings.word_size,
                filters=settings.filters,
            )
            input_size += self.words.output_size
        self.lstm = BiLstm(
            input_size=input_size,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.dropout,
        )
        tags = len(self.tags.names)
        self.output = torch.nn.Linear(self.lstm.output_size, tags)
        self.crf = ConditionalRandomField(tags, include_start_end_transitions=False)

    def logits(self, examples: Sequence[TaggedSentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, K] scores of the labels, and the lengths, int64 [B] on the
        CPU.
        """
        sentences = [each.sentence for each in examples]
        x, lengths = self.inputs(sentences)  # [B, T, D]
        if self.words is not None:
            trained = self.words([sentence.words for sentence in sentences])
            x = torch.cat([x, trained], dim=2)
        return self.output(self.dropout(self.lstm(self.dropout(x), lengths))), lengths

    def loss(self, examples: Sequence[TaggedSentence]) -> Tensor:
        """Negative log-likelihood, summed over the sentences of the batch."""
        logits, lengths = self.logits(examples)
        tags = [bio_to_bioul(example.tags) for example in examples]
        labels = self.tags.numbers(tags, padding=0).to(logits.device)  # [B, T]
        return -self.crf(logits, labels, valid_mask(lengths, logits.device))

    def predict(self, examples: Sequence[TaggedSentence]) -> list[list[str]]:
        """The BIO tags of each sentence's best path."""
        logits, lengths = self.logits(examples)
        scores = require_numbers(logits)
        return list(map(to_bio, self.tags.best(scores, lengths, self.crf.transitions)))


@dataclass(frozen=True, kw_only=True)
class NerReaderOptions(ReaderOptions):
    """Where tags and words are."""

    column: Annotated[
        int, Meta(ge=-1, description="the column of the tags, from 0; -1 is the last")
    ] = -1
    word_column: Annotated[
        int, Meta(ge=-1, description="the column of the words, from 0; -1 finds it")
    ] = -1
    tag_names: Annotated[
        str,
        Meta(
            description="the names of tags that are numbers in rows, from 0 "
            "(default: those of Parquet's metadata)",
            extra={"metavar": "O,B-PER,…", "rare": True},
        ),
    ] = ""


class NerTask(Task[TaggedSentence, list[str]]):
    def read(
        self, path: Path, options: NerReaderOptions, *, training: bool
    ) -> list[TaggedSentence]:
        """Read a file of columns or rows; tags (see `tags`) become BIO."""
        if object_rows(path) is None:
            if options.tag_names:
                warn(f"{path} has no rows: --tag-names is not for it")
            column = options.column
            sentences, _ = read_columns(path, labels=TAG, column=column)
            word_column = find_words(sentences, options.word_column)
        else:
            if max(options.column, options.word_column) >= 0:
                warn(f"{path} has rows: --column and --word-column are not for it")
            column = 1
            names = [name.strip() for name in options.tag_names.split(",") if name]
            sentences = read_tagged_rows(path, names)
            word_column = 0
        check_words(sentences, word_column)
        if column in (word_column, word_column - len(sentences[0].rows[0])):
            raise sentences[0].error(
                0,
                f"column {word_column} has the words: tags are needed in another "
                "(--column), which a tab or a blank divides from it, and here is "
                f"{shortened(' '.join(sentences[0].rows[0]), 40)!r}",
            )
        return [
            TaggedSentence(each.sentence(word_column), own)
            for each, own in zip(sentences, read_tags(sentences, column), strict=True)
        ]

    def labels(self, example: TaggedSentence) -> Sequence[str]:
        """The type of each entity."""
        return [span.label for span in bio_spans(example.tags)]

    def vocabulary(self, train: Sequence[TaggedSentence]) -> dict[str, Any]:
        """The entity types of `train`, and the words and characters that get vectors of
        their own.
        """
        tags = chain.from_iterable(example.tags for example in train)
        types = {tag[2:] for tag in tags if tag != "O"}
        if not types:
            raise InputError(
                "the training data holds no entity, as all its tags are O: "
                "--column gives another column of tags"
            )
        words = [word for each in train for word in each.sentence.words]
        return {
            "types": sorted(types),
            "words": frequent(word.lower() for word in words),
            "characters": frequent(chain.from_iterable(words)),
        }

    def count(self, example: TaggedSentence, prediction: list[str]) -> np.ndarray:
        """[right, gold, predicted] entities, as conlleval counts: type and both
        boundaries must be right.
        """
        return count_items(bio_spans(example.tags), bio_spans(prediction))

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "entity")

    def format_prediction(self, example: TaggedSentence, prediction: list[str]) -> str:
        """Word, gold tag and predicted tag a line, as conlleval reads them."""
        rows = zip(example.sentence.words, example.tags, prediction, strict=True)
        return "".join(" ".join(row) + "\n" for row in rows) + "\n"


# Those of ELMo's tagger on CoNLL-2003 (Peters et al. 2018).
PUBLISHED = NerSettings(
    learning_rate=1e-3,
    gradient_norm=5.0,
    mix_l2=0.1,
    batch_size=64,
    epochs=75,
    patience=25,
)

TASK = NerTask(
    name="ner",
    metric="entity F1",
    unit="sentences",
    item="sentences",
    suffix=".conll",
    reader=NerReaderOptions(),
    model=NerProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        **SMALL_INPUTS,
        batch_size=32,
        epochs=15,
        patience=5,
        hidden_size=100,
        layers=1,
        dropout=0.3,
        word_size=0,
    ),
)
