"""Named entities: which spans of a sentence are names, and of what?

The biLSTM-CRF of Peters et al. (2018): inputs → dropout → biLSTM → dropout → CRF over BIOUL tags. Hyper-parameters
are those published for ELMo on CoNLL-2003; the score is conlleval's entity F1.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from allennlp_light.modules.conditional_random_field import ConditionalRandomField
from allennlp_light.modules.conditional_random_field.conditional_random_field import allowed_transitions
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from downstream.conll import as_word, read_columns
from downstream.inputs import ProbeInputs, Sentence, valid_mask
from downstream.options import TrainingSettings
from downstream.task import Probe, Task
from downstream.viterbi import viterbi
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
    """Hyper-parameters of the probe; the defaults are those published for ELMo."""

    learning_rate: float = field(default=1e-3, metadata={"help": "Adam's learning rate"})
    gradient_norm: float = field(default=5.0, metadata={"help": "gradients are scaled down to this global norm"})
    batch_size: int = field(default=64, metadata={"help": "sentences a batch"})
    epochs: int = field(default=75, metadata={"help": "most epochs"})
    patience: int = field(default=25, metadata={"help": "stop after so many epochs without a better dev F1"})
    hidden_size: int = field(default=200, metadata={"help": "units of the LSTM, each direction"})
    layers: int = field(default=2, metadata={"help": "layers of the LSTM"})
    dropout: float = field(default=0.5, metadata={"help": "dropout before, between and after the LSTM's layers"})
    mix_l2: float = field(default=0.1, metadata={"help": "L2 penalty on the weights of the scalar mix"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dropout >= 1:
            raise InputError(f"--dropout {self.dropout} is not possible: a number under 1 is needed")


class NerProbe(Probe[TaggedSentence, list[str]]):
    """biLSTM-CRF tagger; `types` are the entity types it can predict. Predictions are BIO tags."""

    barred: Tensor

    def __init__(
        self,
        *,
        inputs: ProbeInputs,
        types: Sequence[str],
        hidden_size: int,
        layers: int,
        dropout: float,
        mix_l2: float,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.labels = ["O", *(f"{place}-{name}" for name in types for place in "BILU")]
        self._ids = {label: row for row, label in enumerate(self.labels)}
        self._mix_l2 = mix_l2
        self.dropout = torch.nn.Dropout(dropout)
        self.lstm = torch.nn.LSTM(
            inputs.size,
            hidden_size,
            num_layers=layers,
            dropout=dropout if layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.output = torch.nn.Linear(2 * hidden_size, len(self.labels))
        pairs = allowed_transitions("BIOUL", dict(enumerate(self.labels)))
        self.crf = ConditionalRandomField(len(self.labels), pairs, include_start_end_transitions=False)
        barred = torch.full((len(self.labels) + 2, len(self.labels) + 2), -torch.inf)
        barred[tuple(torch.tensor(pairs).T)] = 0.0
        self.register_buffer("barred", barred, persistent=False)  # 0 where a transition is allowed, else −∞

    def logits(self, examples: Sequence[TaggedSentence]) -> tuple[Tensor, Tensor]:
        """float32 [B, T, K] scores of the labels, and the lengths, int64 [B] on the CPU."""
        x, lengths = self.inputs([example.sentence for example in examples])  # [B, T, D]
        packed = pack_padded_sequence(self.dropout(x), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)  # [B, T, 2H]
        return self.output(self.dropout(states)), lengths

    def loss(self, examples: Sequence[TaggedSentence]) -> Tensor:
        """Negative log-likelihood, summed over the sentences of the batch, and the penalty on the scalar mix."""
        logits, lengths = self.logits(examples)
        labels = pad_sequence(
            [torch.tensor([self._ids[tag] for tag in bio_to_bioul(example.tags)]) for example in examples],
            batch_first=True,
        ).to(logits.device)  # [B, T]
        likelihood = self.crf(logits, labels, valid_mask(lengths, logits.device))
        return self._mix_l2 * self.inputs.mix_penalty() - likelihood

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

    def read(self, path: Path, options: argparse.Namespace) -> list[TaggedSentence]:
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
            words = tuple(as_word(row[0]) for row in columns.rows)
            sentences.append(
                TaggedSentence(
                    Sentence(words, str(path), columns.lines[0]),
                    iob_to_bio([row[column] for row in columns.rows]),
                    mended=sum(word != row[0] for word, row in zip(words, columns.rows, strict=True)),
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

    def build(
        self, *, train: Sequence[TaggedSentence], inputs: ProbeInputs, settings: TrainingSettings
    ) -> Probe[TaggedSentence, list[str]]:
        """A biLSTM-CRF for the entity types of `train`."""
        assert isinstance(settings, NerSettings)
        types = sorted({tag[2:] for example in train for tag in example.tags} - {""})
        if not types:
            raise InputError("the training data holds no entity: name the column of the tags with --column")
        return NerProbe(
            inputs=inputs,
            types=types,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.dropout,
            mix_l2=settings.mix_l2,
        )

    def score(self, examples: Sequence[TaggedSentence], predictions: Sequence[list[str]]) -> float:
        """Entity F1 in percent, as conlleval counts: type and both boundaries must be right."""
        return 100 * float(f1_score([example.tags for example in examples], list(predictions), zero_division=0))

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


TASK = NerTask(
    name="ner",
    metric="entity F1",
    published=NerSettings(),
    small=NerSettings(learning_rate=3e-3, batch_size=32, epochs=20, patience=5, hidden_size=100, layers=1, dropout=0.3),
)
