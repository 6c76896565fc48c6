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
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import (
    pack_padded_sequence,
    pad_packed_sequence,
    pad_sequence,
)

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

# In place of the tag of a place after the end of a sentence.
_PADDING = -100


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
        # As in He et al.'s tagger.
        torch.nn.init.orthogonal_(self.output.weight)
        allowed = allowed_transitions("BIO", dict(enumerate(self.tags)))
        # It is made from the tags, so a saved probe does without it.
        mask = transition_mask(allowed, len(self.tags))
        self.register_buffer("transition_mask", mask, persistent=False)

    def loss(self, examples: Sequence[SrlSentence]) -> Tensor:
        """Negative log-likelihood of the tags: the mean over a sentence's words, and of
        that over the propositions.
        """
        scores, lengths = self._scores(examples)
        rows = []
        for example in examples:
            for proposition in example.propositions:
                tags = bio_tags(proposition.spans, len(example.sentence.words))
                rows.append(torch.tensor([self._ids[tag] for tag in tags]))
        targets = pad_sequence(rows, batch_first=True, padding_value=_PADDING)  # [R, T]
        losses = cross_entropy(
            scores.flatten(0, 1),
            targets.flatten().to(scores.device),
            ignore_index=_PADDING,
            reduction="none",
        )
        sums = losses.view(targets.shape).sum(dim=1)  # [R]
        return (sums / lengths.to(sums)).mean()

    def predict(self, examples: Sequence[SrlSentence]) -> list[Roles]:
        """For each sentence, the spans of each of its propositions."""
        scores, lengths = self._scores(examples)
        tags = len(self.tags)
        paths = viterbi(
            require_numbers(scores),
            lengths,
            transitions=self.transition_mask[:tags, :tags],
            start=self.transition_mask[tags, :tags],
            end=self.transition_mask[:tags, tags + 1],
        )
        # A path is a proposition's: sentences take theirs in turn.
        spans = [bio_to_spans([self.tags[tag] for tag in path]) for path in paths]
        roles = []
        first = 0
        for example in examples:
            end = first + len(example.propositions)
            roles.append(spans[first:end])
            first = end
        return roles

    def _scores(self, examples: Sequence[SrlSentence]) -> tuple[Tensor, Tensor]:
        """Scores of the tags, [R, T, K], of the R propositions of a batch, sentence
        after sentence, and the lengths of their sentences, int64 [R] on the CPU.
        """
        x, lengths = self.inputs([example.sentence for example in examples])
        numbers = torch.tensor([len(example.propositions) for example in examples])
        sentence = torch.arange(len(examples)).repeat_interleave(numbers)  # [R]
        propositions = chain.from_iterable(example.propositions for example in examples)
        predicate = torch.tensor([each.predicate for each in propositions])  # [R]
        flag = predicate.unsqueeze(1) == torch.arange(x.shape[1])  # [R, T]
        # The first layer's product with its inputs is the words' product, made once a
        # sentence, plus the flag's: sentences have four predicates on average.
        first = self.lstm.first
        widths = [x.shape[2], self.flag.embedding_dim]
        of_words, of_flags = first.weight.split(widths, dim=1)
        words = linear(self.dropout(x), of_words, first.bias)  # [B, T, 6H]
        flags = linear(self.flag.weight, of_flags)  # [2, 6H]
        own_words = words[sentence.to(words.device)]  # [R, T, 6H]
        own_flags = flags[flag.long().to(flags.device)]
        packed = pack_padded_sequence(
            own_words + own_flags,
            lengths[sentence],
            batch_first=True,
            enforce_sorted=False,
        )
        states = self.lstm(packed)
        scores = states._replace(data=self.output(states.data))  # [N, K]
        return pad_packed_sequence(scores, batch_first=True)


def bio_to_spans(tags: list[str]) -> tuple[Span, ...]:
    """The spans of BIO tags, by their first words."""
    return tuple(Span(*entity) for entity in get_entities(tags))
