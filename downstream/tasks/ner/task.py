"""Named entity recognition: which spans of a sentence are names, and of what type.

The model is the biLSTM-CRF of Peters et al. (2018): inputs → dropout → biLSTM → dropout
→ CRF over BIOUL tags, with the hyper-parameters published for ELMo on CoNLL-2003. Their
character CNN is off unless `--characters` asks for it, as inputs are compared. The
score is conlleval's entity F1.
"""

import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from allennlp_light.modules.conditional_random_field.conditional_random_field import (
    allowed_transitions,
)
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from msgspec import Meta
from seqeval.metrics.sequence_labeling import get_entities
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence
from downstream.metrics import count_labels, label_table, precision_recall_f1
from downstream.modules.tagging import BiLstm, transition_mask, viterbi
from downstream.printing import counted, note
from downstream.probe.task import Probe, Task, require_numbers
from downstream.readers.columns import Span, bio_tags, outermost, read_columns
from downstream.settings import (
    SMALL_MIX_RATE,
    Dropout,
    ReaderOptions,
    Size,
    TrainingSettings,
)
from elmoc.errors import InputError

# Ids of the special symbols; the characters' ids follow.
PADDING, BEGIN, END, UNKNOWN = range(4)
# Characters of a word that are read; longer words are damaged data.
MOST_CHARACTERS = 1_000


class CharacterCnn(torch.nn.Module):
    """Vectors of words from their characters: embeddings, convolutions of `widths`,
    ReLU, maximum over the word.

    characters    those that have an embedding of their own; all others share one
    filters       filters of each width; a word's vector has `output_size` = filters ×
    widths numbers

    A word is read between a begin and an end mark, up to `MOST_CHARACTERS`: all words
    of a batch are padded to the longest.
    """

    def __init__(
        self,
        *,
        characters: Sequence[str],
        size: int,
        filters: int,
        widths: Sequence[int],
    ) -> None:
        super().__init__()
        self._ids = {
            character: row for row, character in enumerate(characters, UNKNOWN + 1)
        }
        self._shortest = max(widths)
        self._rows: dict[str, Tensor] = {}
        self.embedding = torch.nn.Embedding(
            UNKNOWN + 1 + len(characters), size, padding_idx=PADDING
        )
        self.encoder = CnnEncoder(size, filters, tuple(widths))
        self.output_size = filters * len(widths)

    def forward(self, sentences: Sequence[TaskSentence]) -> Tensor:
        """float32 [B, T, output_size], zeros after the end of a sentence; each distinct
        word is read once.
        """
        places: dict[str, int] = {}
        rows = [
            torch.tensor(
                [places.setdefault(word, len(places)) for word in sentence.words]
            )
            for sentence in sentences
        ]
        ids = pad_sequence(
            [self._word_ids(word) for word in places],
            batch_first=True,
            padding_value=PADDING,
        )  # [U, C]
        ids = ids.to(self.embedding.weight.device)
        vectors = self.encoder(self.embedding(ids), ids != PADDING)  # [U, output_size]
        vectors = torch.cat([vectors, vectors.new_zeros(1, self.output_size)])
        return vectors[
            pad_sequence(rows, batch_first=True, padding_value=len(places)).to(
                vectors.device
            )
        ]

    def _word_ids(self, word: str) -> Tensor:
        if word not in self._rows:
            ids = [
                BEGIN,
                *(
                    self._ids.get(character, UNKNOWN)
                    for character in word[:MOST_CHARACTERS]
                ),
                END,
            ]
            ids += [PADDING] * (self._shortest - len(ids))
            self._rows[word] = torch.tensor(ids)
        return self._rows[word]


@dataclass(frozen=True)
class TaggedSentence:
    """A sentence and its BIO tags."""

    sentence: TaskSentence
    tags: list[str]


@dataclass(frozen=True, kw_only=True)
class NerSettings(TrainingSettings):
    """Hyper-parameters of the tagger."""

    hidden_size: Annotated[
        Size, Meta(description="units of the LSTM, each direction")
    ] = 200
    layers: Annotated[int, Meta(ge=1, le=100, description="layers of the LSTM")] = 2
    dropout: Annotated[
        Dropout, Meta(description="dropout before, between and after the LSTM's layers")
    ] = 0.5
    characters: Annotated[
        bool, Meta(description="read each word's characters, too")
    ] = False
    character_size: Annotated[
        Size, Meta(description="numbers of a character's embedding")
    ] = 16
    character_filters: Annotated[
        Size, Meta(description="filters of the character CNN")
    ] = 128
    character_width: Annotated[
        int, Meta(ge=1, le=1_000, description="characters under a filter")
    ] = 3


class NerProbe(Probe[TaggedSentence, list[str]]):
    """biLSTM-CRF tagger; `types` are the entity types it can predict. Predictions are
    BIO tags.

    characters  those that have an embedding of their own in the character CNN, where
    the settings ask for one
    """

    transition_mask: Tensor

    def __init__(
        self,
        *,
        inputs: ProbeInputs,
        settings: NerSettings,
        types: Sequence[str],
        characters: Sequence[str],
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.characters: CharacterCnn | None = None
        size = inputs.size
        if settings.characters:
            self.characters = CharacterCnn(
                characters=characters,
                size=settings.character_size,
                filters=settings.character_filters,
                widths=[settings.character_width],
            )
            size += self.characters.output_size
        self.labels = ["O", *(f"{place}-{name}" for name in types for place in "BILU")]
        self._ids = {label: row for row, label in enumerate(self.labels)}
        self.dropout = torch.nn.Dropout(settings.dropout)
        self.lstm = BiLstm(
            input_size=size,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.dropout,
        )
        self.output = torch.nn.Linear(self.lstm.output_size, len(self.labels))
        allowed = allowed_transitions("BIOUL", dict(enumerate(self.labels)))
        self.crf = ConditionalRandomField(
            len(self.labels), allowed, include_start_end_transitions=False
        )
        self.register_buffer(
            "transition_mask",
            transition_mask(allowed, len(self.labels)),
            persistent=False,
        )

    def logits(self, examples: Sequence[TaggedSentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, K] scores of the labels, and the lengths, int64 [B] on the
        CPU.
        """
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
            [
                torch.tensor([self._ids[tag] for tag in bio_to_bioul(example.tags)])
                for example in examples
            ],
            batch_first=True,
        ).to(logits.device)  # [B, T]
        return -self.crf(logits, labels, valid_mask(lengths, logits.device))

    def predict(self, examples: Sequence[TaggedSentence]) -> list[list[str]]:
        """The BIO tags of each sentence's best path."""
        logits, lengths = self.logits(examples)
        tags = len(self.labels)
        paths = viterbi(
            require_numbers(logits),
            lengths,
            transitions=self.crf.transitions + self.transition_mask[:tags, :tags],
            start=self.transition_mask[tags, :tags],
            end=self.transition_mask[:tags, tags + 1],
        )
        return [iob_to_bio([self.labels[label] for label in path]) for path in paths]


def bio_to_bioul(tags: list[str]) -> list[str]:
    """BIO → BIOUL: the last word of an entity is L, an entity of one word is U."""
    coded = ["O"] * len(tags)
    for name, begin, end in get_entities(tags):
        places = "U" if begin == end else f"B{'I' * (end - begin - 1)}L"
        coded[begin : end + 1] = [f"{place}-{name}" for place in places]
    return coded


# O, the place of a word in its entity and the entity's type where there are several, or
# a bracket: (GPE*, *, *), (GPE).
_TAG = re.compile(r"O|[BIELSUMW](-\S{1,100})?|[(*].{0,100}")
# Letters of BIOLU, BMES and BMEWO → letters of BIOES.
_AS_BIOES = {"L": "E", "U": "S", "M": "I", "W": "S"}
# The type of entities whose tags name none.
UNTYPED = "-ENTITY"


@dataclass(frozen=True, kw_only=True)
class NerReaderOptions(ReaderOptions):
    """Where tags and words are."""

    column: Annotated[
        int, Meta(ge=-1, description="the column of the tags, from 0; -1 is the last")
    ] = -1
    word_column: Annotated[
        int, Meta(ge=-1, description="the column of the words, from 0; -1 finds it")
    ] = -1


class NerTask(Task[TaggedSentence, list[str]]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[TaggedSentence]:
        """Read a file of columns; tags are BIO, IOB1, BIOES, BIOLU, BMES or OntoNotes'
        brackets, and become BIO.
        """
        assert isinstance(options, NerReaderOptions)
        word_column = None if options.word_column < 0 else options.word_column
        file = read_columns(
            path, word_column=word_column, column=options.column, labels=_TAG
        )
        sentences = []
        inner = 0
        for columns in file.sentences:
            tags = columns.column(options.column)
            words = columns.sentence(file.word_column)
            if options.column % len(columns.rows[0]) == file.word_column:
                raise columns.error(
                    0,
                    f"column {file.word_column} has the words: name the tags' with --column",
                )
            for place, tag in enumerate(tags):
                if not _TAG.fullmatch(tag):
                    raise columns.error(
                        place,
                        f"{reprlib.repr(tag)} is no tag like O, B-TYPE, I-TYPE (nor E-, S-, L-, U-, M- or W-TYPE), "
                        "and no bracket like (TYPE*: name the column of the tags with --column",
                    )
            if any(tag[0] in "(*" for tag in tags):
                spans = columns.bracketed(options.column)
                tags = bio_tags(outermost(spans), len(tags))
                inner = inner + len(spans) - len(outermost(spans))
            sentences.append(TaggedSentence(words, iob_to_bio(tags)))
        if inner:
            note(
                f"{path}: {counted(inner, 'entity', 'entities')} inside others are left out"
            )
        return sentences

    def describe(self, examples: Sequence[TaggedSentence]) -> str:
        tokens = sum(len(example.tags) for example in examples)
        entities = sum(
            tag.startswith("B-") for example in examples for tag in example.tags
        )
        counts = (
            counted(len(examples), "sentence"),
            counted(tokens, "token"),
            counted(entities, "entity", "entities"),
        )
        return ", ".join(counts)

    def vocabulary(self, train: Sequence[TaggedSentence]) -> dict[str, Any]:
        """The entity types and the characters of `train`."""
        types = sorted({tag[2:] for example in train for tag in example.tags} - {""})
        if not types:
            raise InputError(
                "the training data holds no entity: name the column of the tags with --column"
            )
        characters = {
            character
            for example in train
            for word in example.sentence.words
            for character in word
        }
        return {"types": types, "characters": sorted(characters)}

    def count(self, example: TaggedSentence, prediction: list[str]) -> np.ndarray:
        """[right, gold, predicted] entities, as conlleval counts: type and both
        boundaries must be right.
        """
        return sum(
            count_labels(get_entities(example.tags), get_entities(prediction)).values(),
            np.zeros(3),
        )

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "entity")

    def details(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[list[str]]
    ) -> str:
        """Precision, recall and F1 of each entity type."""
        gold = get_entities([example.tags for example in examples])
        return label_table(count_labels(gold, get_entities(list(predictions))))

    def format_prediction(self, example: TaggedSentence, prediction: list[str]) -> str:
        """Word, gold tag and predicted tag, separated by a space: what conlleval reads."""
        rows = zip(example.sentence.words, example.tags, prediction, strict=True)
        return "".join(" ".join(row) + "\n" for row in rows) + "\n"


def iob_to_bio(tags: list[str]) -> list[str]:
    """BIO tags of the entities that conlleval sees in BIO, IOB1, BIOES, BIOLU or BMES
    tags, which may be without types.

    An `I-X` that does not follow an entity word of type X begins an entity.
    """
    typed = [tag if tag == "O" or "-" in tag else tag + UNTYPED for tag in tags]
    known = [_AS_BIOES.get(tag[0], tag[0]) + tag[1:] for tag in typed]
    return bio_tags([Span(*entity) for entity in get_entities(known)], len(tags))


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
        mix_rate=SMALL_MIX_RATE,
        batch_size=32,
        epochs=15,
        patience=5,
        hidden_size=100,
        layers=1,
        dropout=0.3,
    ),
)
