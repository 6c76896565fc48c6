"""The deep tagger of He et al. (2017): inputs and an embedding that tells the
predicate's word from the others → highway LSTM layers of alternating direction → scores
of BIO tags.

There are no weights of transitions: decoding finds the best path that BIO tags allow
(section 2.3), as in AllenNLP's model. The embedding of the predicate's flag starts from
PyTorch's N(0, 1), which is larger than AllenNLP's start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Annotated

import torch
from allennlp_light.nn.util import sequence_cross_entropy_with_logits
from msgspec import Meta
from torch import Tensor
from torch.nn.functional import embedding, linear
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence
from downstream.modules.lstm import AlternatingLstm
from downstream.modules.tagging import Tags
from downstream.probe.task import Probe, require_numbers
from downstream.readers.columns import Span, bio_spans, bio_tags
from downstream.settings import Dropout, Size, TrainingSettings


@dataclass(frozen=True)
class Proposition:
    """A predicate and its roles.

    predicate: the place of its word in the sentence.
    lemma: of the predicate.
    spans: of the roles, `V` among them, in the order of their first words.
    """

    predicate: int
    lemma: str
    spans: Sequence[Span]


@dataclass(frozen=True)
class SrlSentence:
    """A sentence with a proposition for each of its predicates, at least one."""

    sentence: TaskSentence
    propositions: Sequence[Proposition]


# A prediction: the spans of each proposition of a sentence.
Roles = list[Sequence[Span]]


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

    def __init__(
        self, *, inputs: ProbeInputs, settings: SrlSettings, labels: Sequence[str]
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.tags = Tags(labels, "BI")
        self.dropout = torch.nn.Dropout(settings.dropout)
        self.flag = torch.nn.Embedding(2, settings.flag_size)
        self.lstm = AlternatingLstm(
            input_size=inputs.size + settings.flag_size,
            hidden_size=settings.hidden_size,
            layers=settings.layers,
            dropout=settings.recurrent_dropout,
        )
        self.output = torch.nn.Linear(settings.hidden_size, len(self.tags.names))
        # As in He et al.'s tagger.
        torch.nn.init.orthogonal_(self.output.weight)

    def loss(self, examples: Sequence[SrlSentence]) -> Tensor:
        """Negative log-likelihood of the tags.

        It is the mean over the words of a proposition's sentence, and then the mean
        over the propositions.
        """
        scores, lengths = self._scores(examples)
        tags = [
            bio_tags(each.spans, len(example.sentence.words))
            for example in examples
            for each in example.propositions
        ]
        targets = self.tags.numbers(tags, padding=0).to(scores.device)  # [R, T]
        mask = valid_mask(lengths, scores.device)
        return sequence_cross_entropy_with_logits(scores, targets, mask)

    def predict(self, examples: Sequence[SrlSentence]) -> list[Roles]:
        """For each sentence, the spans of each of its propositions."""
        scores, lengths = self._scores(examples)
        # There is a path for each proposition: every sentence takes as many as it has.
        spans = map(bio_spans, self.tags.best(require_numbers(scores), lengths))
        return [list(islice(spans, len(each.propositions))) for each in examples]

    def _scores(self, examples: Sequence[SrlSentence]) -> tuple[Tensor, Tensor]:
        """The scores of the tags, [R, T, K], for the R propositions of a batch, and the
        lengths of their sentences, int64 [R] on the CPU.

        The propositions are in the order of `propositions_of`.
        """
        x, lengths = self.inputs([example.sentence for example in examples])
        counts = torch.tensor([len(example.propositions) for example in examples])
        # The row of each proposition's sentence in the batch, [R].
        sentence = torch.arange(len(examples)).repeat_interleave(counts)
        predicate = torch.tensor([each.predicate for each in propositions_of(examples)])
        flag = predicate.unsqueeze(1) == torch.arange(x.shape[1])  # [R, T]
        # The first layer multiplies a word and its flag, side by side, by one matrix.
        # The word's product is computed once a sentence, and the flag's is added for
        # each of its propositions, of which there are four on average.
        first = self.lstm.cells[0].input_linearity
        of_words = first.weight[:, : x.shape[2]]
        of_flags = first.weight[:, x.shape[2] :]
        words = linear(self.dropout(x), of_words)  # [B, T, 6H]
        flags = linear(self.flag.weight, of_flags)  # [2, 6H]
        # Gradients of an index by `[]` are added in another order each time.
        own_words = words.index_select(0, sentence.to(words.device))  # [R, T, 6H]
        own_flags = embedding(flag.long().to(flags.device), flags)
        packed = pack_padded_sequence(
            own_words + own_flags,
            lengths[sentence],
            batch_first=True,
            enforce_sorted=False,
        )
        states = self.lstm(packed)
        scores = states._replace(data=self.output(states.data))  # [N, K]
        return pad_packed_sequence(scores, batch_first=True)


def propositions_of(examples: Sequence[SrlSentence]) -> list[Proposition]:
    """The propositions of all sentences, in the order of the sentences."""
    return list(chain.from_iterable(example.propositions for example in examples))
