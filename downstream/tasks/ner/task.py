"""Named entities: which spans of a sentence are names, and of what?

The biLSTM-CRF of Peters et al. (2018): inputs → dropout → biLSTM → dropout → CRF over BIOUL tags. Hyper-parameters
are those published for ELMo on CoNLL-2003, but for the character CNN, which is off unless asked for (`--characters`):
what is compared are inputs. The score is conlleval's entity F1.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from allennlp_light.modules.conditional_random_field.conditional_random_field import allowed_transitions
from seqeval.metrics.sequence_labeling import get_entities
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import Sentence, make_sentence
from downstream.layers.bilstm import BiLstm
from downstream.layers.character_cnn import CharacterCnn, characters_of
from downstream.layers.viterbi import viterbi
from downstream.metrics import label_table, precision_recall_f1
from downstream.probe.settings import TrainingSettings, dropout_field
from downstream.probe.task import Probe, Task
from downstream.readers.conll_columns import read_columns
from elmoc.errors import InputError
from elmoc.files import atomic_path

_TAG = re.compile(r"O|[BI]-\S+")


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence and its BIO tags; `mended` words had white space inside (or were empty) in the data."""

    sentence: Sentence
    tags: list[str]
    mended: int


@dataclass(frozen=True, kw_only=True)
class NerSettings(TrainingSettings):
    """Hyper-parameters of the tagger."""

    hidden_size: int = field(metadata={"help": "units of the LSTM, each direction"})
    layers: int = field(metadata={"help": "layers of the LSTM"})
    dropout: float = dropout_field("dropout before, between and after the LSTM's layers")
    characters: bool = field(metadata={"help": "read each word's characters, too"})
    character_size: int = field(metadata={"help": "numbers of a character's embedding"})
    character_filters: int = field(metadata={"help": "filters of the character CNN"})
    character_width: int = field(metadata={"help": "characters under a filter"})


class NerProbe(Probe[TaggedSentence, list[str]]):
    """biLSTM-CRF tagger; `types` are the entity types it can predict. Predictions are BIO tags.

    characters  read beside the inputs, where there is one
    """

    barred: Tensor

    def __init__(
        self,
        *,
        inputs: ProbeInputs,
        types: Sequence[str],
        hidden_size: int,
        layers: int,
        dropout: float,
        characters: CharacterCnn | None,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.characters = characters
        self.labels = ["O", *(f"{place}-{name}" for name in types for place in "BILU")]
        self._ids = {label: row for row, label in enumerate(self.labels)}
        self.dropout = torch.nn.Dropout(dropout)
        size = inputs.size + (characters.output_size if characters else 0)
        self.lstm = BiLstm(input_size=size, hidden_size=hidden_size, layers=layers, dropout=dropout)
        self.output = torch.nn.Linear(self.lstm.output_size, len(self.labels))
        pairs = allowed_transitions("BIOUL", dict(enumerate(self.labels)))
        self.crf = ConditionalRandomField(len(self.labels), pairs, include_start_end_transitions=False)
        barred = torch.full((len(self.labels) + 2, len(self.labels) + 2), -torch.inf)
        barred[tuple(torch.tensor(pairs).T)] = 0.0
        self.register_buffer("barred", barred, persistent=False)  # 0 where a transition is allowed, else −∞

    def logits(self, examples: Sequence[TaggedSentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, K] scores of the labels, and the lengths, int64 [B] on the CPU."""
        sentences = [example.sentence for example in examples]
        x, lengths = self.inputs(sentences)  # [B, T, D]
        if self.characters is not None:
            x = torch.cat([x, self.characters(sentences)], dim=2)
        states = self.lstm(self.dropout(x), lengths)  # [B, T, 2H]
        return self.output(self.dropout(states)), lengths

    def loss(self, examples: Sequence[TaggedSentence]) -> Tensor:
        """Negative log-likelihood, summed over the sentences of the batch."""
        logits, lengths = self.logits(examples)
        labels = pad_sequence(
            [torch.tensor([self._ids[tag] for tag in bio_to_bioul(example.tags)]) for example in examples],
            batch_first=True,
        ).to(logits.device)  # [B, T]
        return -self.crf(logits, labels, valid_mask(lengths, logits.device))

    def predict(self, examples: Sequence[TaggedSentence]) -> list[list[str]]:
        """The BIO tags of each sentence's best path."""
        logits, lengths = self.logits(examples)
        tags = len(self.labels)
        paths = viterbi(
            logits,
            lengths,
            transitions=self.crf.transitions + self.barred[:tags, :tags],
            start=self.barred[tags, :tags],
            end=self.barred[:tags, tags + 1],
        )
        return [bioul_to_bio([self.labels[label] for label in path]) for path in paths]


class NerTask(Task[TaggedSentence, list[str]]):
    """Reader, model and metric of named entity recognition."""

    def add_reader_options(self, parser: argparse.ArgumentParser) -> None:
        """`--column`: where the tags are."""
        parser.add_argument(
            "--column", type=int, default=-1, metavar="N", help="the column of the tags, from 0 (default: the last)"
        )

    def read(self, path: Path, options: argparse.Namespace, *, training: bool) -> list[TaggedSentence]:
        """Read a file of CoNLL columns, the word first; tags are BIO or IOB1 and become BIO."""
        sentences = []
        for columns in read_columns(path):
            width = len(columns.rows[0])
            column = options.column + width if options.column == -1 else options.column
            if not 0 < column < width:
                raise InputError(
                    f"{path}, line {columns.lines[0]}: there is no tag column {options.column}; the line has {width} "
                    "columns, the first (0) being the word"
                )
            for row, line in zip(columns.rows, columns.lines, strict=True):
                if not _TAG.fullmatch(row[column]):
                    raise InputError(
                        f"{path}, line {line}: {row[column]!r} is not a tag of the form O, B-TYPE or I-TYPE; "
                        "name the column of the tags with --column"
                    )
            words = [row[0] for row in columns.rows]
            sentences.append(
                TaggedSentence(
                    make_sentence(words, file=path, line=columns.lines[0]),
                    iob_to_bio([row[column] for row in columns.rows]),
                    mended=sum(word.split() != [word] for word in words),
                )
            )
        return sentences

    def sentences(self, example: TaggedSentence) -> list[Sentence]:
        """One sentence an example."""
        return [example.sentence]

    def describe(self, examples: Sequence[TaggedSentence]) -> str:
        """Counts of sentences, tokens and entities."""
        tokens = sum(len(example.tags) for example in examples)
        entities = sum(tag.startswith("B-") for example in examples for tag in example.tags)
        mended = sum(example.mended for example in examples)
        text = f"{len(examples):,} sentences, {tokens:,} tokens, {entities:,} entities"
        return text + (f" ({mended} words are empty or hold white space: read with _)" if mended else "")

    def vocabulary(self, train: Sequence[TaggedSentence]) -> dict[str, Any]:
        """The entity types and the characters of `train`."""
        types = sorted({tag[2:] for example in train for tag in example.tags} - {""})
        if not types:
            raise InputError("the training data holds no entity: name the column of the tags with --column")
        return {"types": types, "characters": characters_of(example.sentence for example in train)}

    def build(
        self, *, vocabulary: dict[str, Any], inputs: ProbeInputs, settings: TrainingSettings
    ) -> Probe[TaggedSentence, list[str]]:
        """A biLSTM-CRF for the entity types of the vocabulary."""
        assert isinstance(settings, NerSettings)
        characters = None
        if settings.characters:
            characters = CharacterCnn(
                characters=vocabulary["characters"],
                size=settings.character_size,
                filters=settings.character_filters,
                widths=[settings.character_width],
            )
        return NerProbe(
            inputs=inputs,
            types=vocabulary["types"],
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.dropout,
            characters=characters,
        )

    def count(self, example: TaggedSentence, prediction: list[str]) -> np.ndarray:
        """[right, gold, predicted] entities, as conlleval counts: type and both boundaries must be right."""
        gold, predicted = set(get_entities(example.tags)), set(get_entities(prediction))
        return np.array([len(gold & predicted), len(gold), len(predicted)], dtype=np.float64)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Entity precision, recall and F1 in percent."""
        return precision_recall_f1(counts, "entity")

    def details(self, examples: Sequence[TaggedSentence], predictions: Sequence[list[str]]) -> str:
        """Precision, recall and F1 of each entity type."""
        counts: dict[str, np.ndarray] = {}
        for example, prediction in zip(examples, predictions, strict=True):
            gold, predicted = set(get_entities(example.tags)), set(get_entities(prediction))
            for column, entities in enumerate((gold & predicted, gold, predicted)):
                for name, _, _ in entities:
                    counts.setdefault(name, np.zeros(3))[column] += 1
        return label_table(counts)

    def write_predictions(
        self, path: Path, examples: Sequence[TaggedSentence], predictions: Sequence[list[str]]
    ) -> None:
        """Word, gold tag and predicted tag, separated by a space: what conlleval reads."""
        with atomic_path(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
            for example, predicted in zip(examples, predictions, strict=True):
                for row in zip(example.sentence.words, example.tags, predicted, strict=True):
                    file.write(" ".join(row) + "\n")
                file.write("\n")


def iob_to_bio(tags: list[str]) -> list[str]:
    """BIO tags of the entities that conlleval sees in BIO or IOB1 tags.

    An `I-X` that does not follow an entity word of type X begins an entity.
    """
    return _tag_entities(tags, first="B", inside="I", last="I", single="B")


def bio_to_bioul(tags: list[str]) -> list[str]:
    """BIO → BIOUL: the last word of an entity is L, an entity of one word is U."""
    return _tag_entities(tags, first="B", inside="I", last="L", single="U")


def bioul_to_bio(tags: list[str]) -> list[str]:
    """BIOUL → BIO."""
    return [{"U": "B", "L": "I"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]


def _tag_entities(tags: list[str], *, first: str, inside: str, last: str, single: str) -> list[str]:
    coded = ["O"] * len(tags)
    for name, begin, end in get_entities(tags):
        places = [single] if begin == end else [first, *[inside] * (end - begin - 1), last]
        coded[begin : end + 1] = [f"{place}-{name}" for place in places]
    return coded


PUBLISHED = NerSettings(
    learning_rate=1e-3,
    gradient_norm=5.0,
    mix_l2=0.1,
    batch_size=64,
    epochs=75,
    patience=25,
    hidden_size=200,
    layers=2,
    dropout=0.5,
    characters=False,
    character_size=16,
    character_filters=128,
    character_width=3,
)

TASK = NerTask(
    name="ner",
    metric="entity F1",
    unit="sentences",
    item="sentences",
    suffix=".conll",
    published=PUBLISHED,
    small=replace(PUBLISHED, batch_size=32, epochs=15, patience=5, hidden_size=100, layers=1, dropout=0.3),
)
