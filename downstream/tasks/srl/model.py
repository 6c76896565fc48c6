"""Model of semantic role labelling: the deep tagger of He et al. (2017).

Inputs and an embedding that tells the predicate's word from the others → highway LSTM
layers of alternating direction → scores of BIO tags. A sentence is read once for each
of its predicates. There are no weights of transitions: decoding finds the best path
that BIO tags allow (section 2.3), as in AllenNLP's model. The embedding of the
predicate's flag starts from PyTorch's N(0, 1), which is larger than AllenNLP's start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

import torch
from allennlp_light.modules.conditional_random_field.conditional_random_field import (
    allowed_transitions,
)
from msgspec import Meta
from seqeval.metrics.sequence_labeling import get_entities
from torch import Tensor
from torch.nn.functional import linear
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence
from downstream.modules.highway_lstm import AlternatingLstm
from downstream.modules.tagging import transition_mask, viterbi
from downstream.probe.task import Probe, require_numbers
from downstream.readers.columns import Span, bio_tags
from downstream.settings import (
    Dropout,
    Size,
    TrainingSettings,
)


@dataclass(frozen=True)
class Proposition:
    """A predicate's word and lemma, and the spans of its roles by their first words,
    `V` among them.
    """

    predicate: int
    lemma: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class SrlSentence:
    """A sentence with a proposition for each of its predicates, one at least."""

    sentence: TaskSentence
    propositions: tuple[Proposition, ...]


# A prediction: the spans of each proposition of a sentence.
Roles = list[tuple[Span, ...]]


@dataclass(frozen=True, kw_only=True)
class SrlSettings(TrainingSettings):
    """Hyper-parameters of the tagger."""

    flag_size: Annotated[
        Size, Meta(description="numbers of the embedding that marks the predicate")
    ] = 100
    hidden_size: Annotated[Size, Meta(description="units of a layer of the LSTM")] = 300
    layers: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="layers of the LSTM, forwards and backwards in turn",
        ),
    ] = 8
    dropout: Annotated[Dropout, Meta(description="dropout on the inputs")] = 0.1
    recurrent_dropout: Annotated[
        Dropout, Meta(description="dropout on the states that go from word to word")
    ] = 0.1


@dataclass(frozen=True)
class _Packing:
    """The R propositions of a batch, longest sentence first, and their N words, packed
    as in `highway_lstm`.

    row: int64 [R], the place of each proposition in the batch, sentence after sentence.
    words: [R], the length of each proposition's sentence.
    sizes: how many of the propositions have a word at each place.
    inside: bool [T, R], which of them do.
    word: int64 [N], the row of each word in the inputs [B · T, …].
    flag: int64 [N], 1 for the predicate.
    """

    row: Tensor
    words: Tensor
    sizes: list[int]
    inside: Tensor
    word: Tensor
    flag: Tensor


class SrlProbe(Probe[SrlSentence, Roles]):
    """Tagger for `labels` of spans: roles, their C- and R- forms, and V.

    The dropout on the inputs has one mask for all propositions of a sentence.
    """

    transition_mask: Tensor

    def __init__(
        self, *, inputs: ProbeInputs, settings: SrlSettings, labels: Sequence[str]
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.tags = ["O"]
        for label in labels:
            self.tags += [f"B-{label}", f"I-{label}"]
        self._ids = {tag: row for row, tag in enumerate(self.tags)}
        self.dropout = torch.nn.Dropout(settings.dropout)
        self.flag = torch.nn.Embedding(2, settings.flag_size)
        self.lstm = AlternatingLstm(
            input_size=inputs.size + settings.flag_size,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.recurrent_dropout,
        )
        self.output = torch.nn.Linear(settings.hidden_size, len(self.tags))
        torch.nn.init.orthogonal_(self.output.weight)
        allowed = allowed_transitions("BIO", dict(enumerate(self.tags)))
        # It is made from the tags, so a saved probe does without it.
        mask = transition_mask(allowed, len(self.tags))
        self.register_buffer("transition_mask", mask, persistent=False)

    def loss(self, examples: Sequence[SrlSentence]) -> Tensor:
        """Negative log-likelihood of the tags: the mean over a sentence's words, and of
        that over the propositions.
        """
        logits, packing = self._logits(examples)
        rows = []
        for example in examples:
            length = len(example.sentence.words)
            for proposition in example.propositions:
                tags = bio_tags(proposition.spans, length)
                rows.append(torch.tensor([self._ids[tag] for tag in tags]))
        inside = packing.inside
        padded = pad_sequence([rows[row] for row in packing.row.tolist()])  # [T, R]
        targets = padded[inside].to(logits.device)  # [N]
        weights = (1 / packing.words).expand(inside.shape)[inside].to(logits)  # [N]
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        return (losses * weights).sum() / len(packing.words)

    def predict(self, examples: Sequence[SrlSentence]) -> list[Roles]:
        """For each sentence, the spans of each of its propositions."""
        logits, packing = self._logits(examples)
        steps, count = packing.inside.shape
        tags = len(self.tags)
        padded = logits.new_zeros(steps, count, tags)
        padded[packing.inside] = require_numbers(logits)
        paths = viterbi(
            padded.transpose(0, 1),
            packing.words,
            transitions=self.transition_mask[:tags, :tags],
            start=self.transition_mask[tags, :tags],
            end=self.transition_mask[:tags, tags + 1],
        )
        found = dict(zip(packing.row.tolist(), paths, strict=True))
        roles = []
        row = 0
        for example in examples:
            own = []
            for _ in example.propositions:
                own.append(bio_to_spans([self.tags[tag] for tag in found[row]]))
                row += 1
            roles.append(own)
        return roles

    def _logits(self, examples: Sequence[SrlSentence]) -> tuple[Tensor, _Packing]:
        """Scores of the tags, [N, K].

        The first layer's product with its inputs is the words' product, made once a
        sentence, plus the flag's.
        """
        sentences = [example.sentence for example in examples]
        x, lengths = self.inputs(sentences)  # [B, T, D]
        packing = _pack(examples, lengths)
        cell = self.lstm.first
        widths = [x.shape[2], self.flag.embedding_dim]
        of_words, of_flags = cell.weight.split(widths, dim=1)
        flat = self.dropout(x).flatten(0, 1)
        words = linear(flat, of_words, cell.bias)  # [B · T, 6H]
        flags = self.flag.weight @ of_flags.t()  # [2, 6H]
        word = packing.word.to(words.device)
        flag = packing.flag.to(words.device)
        projected = words[word] + flags[flag]  # [N, 6H]
        states = self.lstm(projected, packing.sizes)  # [N, H]
        return self.output(states), packing


def _pack(examples: Sequence[SrlSentence], lengths: Tensor) -> _Packing:
    numbers = torch.tensor([len(example.propositions) for example in examples])
    sentence = torch.arange(len(examples)).repeat_interleave(numbers)  # [R]
    propositions = chain.from_iterable(example.propositions for example in examples)
    predicate = torch.tensor([each.predicate for each in propositions])  # [R]
    # Packed words need the longest sentence first.
    words, order = lengths[sentence].sort(descending=True, stable=True)
    steps = int(words[0])
    place = torch.arange(steps).unsqueeze(1)  # [T, 1]
    inside = place < words  # [T, R]
    return _Packing(
        row=order,
        words=words,
        sizes=inside.sum(dim=1).tolist(),
        inside=inside,
        word=(sentence[order] * steps + place)[inside],
        flag=(predicate[order] == place).long()[inside],
    )


def bio_to_spans(tags: list[str]) -> tuple[Span, ...]:
    """The spans of BIO tags, by their first words."""
    return tuple(Span(*entity) for entity in get_entities(tags))
