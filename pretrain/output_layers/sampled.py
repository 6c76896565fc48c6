"""Sampled softmax: how is the next word told from types that are drawn, with trained or
fixed vectors?

It is the original ELMo's output layer (Peters et al. 2018). The types drawn are the
same for all targets of a window. Each score is corrected by the chance that its type is
drawn, so that the expected optimum is the same as of the softmax over all types (Bengio
and Senécal 2008; Jean et al. 2015).
Letters: N targets, P projection, E width of vectors, C classes, U candidates, S those
that are drawn.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import (
    Candidates,
    Loss,
    OutputLayer,
    SampleSettings,
    Targets,
)
from pretrain.output_layers.continuous import (
    NO_CANDIDATE,
    LinearOutput,
    LinearSettings,
    sum_of_known,
)
from pretrain.output_layers.retrieval import NORM, Retriever, ScoreRetriever
from pretrain.output_layers.softmax import SoftmaxOutput, SoftmaxSettings

Samples = Annotated[
    int,
    Meta(
        ge=1,
        # A bound for mistakes: the vectors of more would fill the memory.
        le=2**24,
        description="distinct types that are drawn for each window and direction, on "
        "average; half of all types or more: all",
    ),
]


def sampled_loss(
    predictions: Tensor, rows: Tensor, bias: Tensor, candidates: Candidates
) -> Loss:
    """The cross-entropy of each target among the types drawn and itself, summed.

    Args:
        predictions: [N, D].
        rows: [U, D], the vectors of the candidates; a target whose vector is all zeros
            is masked.
        bias: [U]
        candidates: their chances, and which are drawn.
    """
    labels = candidates.labels.flatten()
    drawn = candidates.shared
    known = rows.any(dim=1)  # [U]
    bias = bias - candidates.log_chance
    drawn_bias = bias[:drawn].masked_fill(~known[:drawn], NO_CANDIDATE)
    sampled = (predictions @ rows[:drawn].T).float() + drawn_bias  # [N, S]
    # a target that is drawn, too, would be told from itself
    itself = torch.arange(drawn, device=labels.device) == labels.unsqueeze(1)
    sampled = sampled.masked_fill(itself, NO_CANDIDATE)
    # by `F.embedding`: the gradient of indexing would depend on the order of threads
    own_bias = F.embedding(labels, bias.unsqueeze(1))[:, 0]  # [N]
    own_rows = F.embedding(labels, rows).float()  # [N, D]
    own = (predictions.float() * own_rows).sum(dim=1) + own_bias  # [N]
    scores = torch.cat([own.unsqueeze(1), sampled], dim=1)  # [N, 1 + S]
    return sum_of_known(scores.logsumexp(dim=1) - own, known[labels])


class SampledOutput(SoftmaxOutput):
    """A vector and a bias for each class; an update reads and changes a window's
    candidates alone.

    The bias of a class is a last number behind its vector, so that both are read at
    once. Their gradients are sparse, so that Adagrad updates them, as all weights of
    the original ELMo.
    """

    def __init__(
        self, projection_size: int, classes: int, settings: "SampledSettings"
    ) -> None:
        super().__init__(classes)
        self.rows = nn.Parameter(torch.empty(classes, projection_size + 1))
        nn.init.normal_(self.rows, std=projection_size**-0.5)
        # the biases
        nn.init.zeros_(self.rows[:, -1])
        self.adagrad = {
            "rate_factor": settings.rate_factor,
            "accumulator": settings.accumulator,
        }

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`; no target is masked."""
        candidates = targets.candidates
        assert candidates is not None
        assert candidates.ids is not None
        rows = F.embedding(candidates.ids, self.rows, sparse=True)  # [U, P + 1]
        return sampled_loss(states.flatten(0, 1), rows[:, :-1], rows[:, -1], candidates)

    def scored(
        self, states: Tensor, classes: Tensor, candidates: int
    ) -> tuple[Tensor, Tensor]:
        scores = states @ self.rows[:, :-1].T + self.rows[:, -1]  # [N, C]
        scores = scores.float().log_softmax(dim=1)
        return scores[:, :candidates], scores.gather(1, classes.unsqueeze(1))[:, 0]


@dataclass(frozen=True)
class SampledSettings(SoftmaxSettings):
    """The sampled softmax; the default of `samples` is the original ELMo's."""

    kind: ClassVar[str] = "sampled"

    samples: Samples = 8192
    rate_factor: Annotated[
        float,
        Meta(
            gt=0,
            le=1e6,
            description="the learning rate of its vectors, as a multiple of the "
            "schedule's",
        ),
    ] = 20.0
    accumulator: Annotated[
        float,
        Meta(ge=0, le=1e6, description="what Adagrad's sum of squares begins with"),
    ] = 0.0

    @property
    def candidates(self) -> SampleSettings:
        """Types that are drawn from the K that are told apart."""
        return SampleSettings(self.samples, self.types)

    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> SampledOutput:
        return SampledOutput(projection_size, self.classes_of(corpus), self)


class FixedOutput(LinearOutput):
    """Sampled softmax with the vectors of the target table, which stay as they are (Li
    et al. 2019, Section 5.2).

    A type's score is ŷ · w. Any type of the lexicon can be a target. Vectors are
    streamed, as for the continuous output.
    """

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`; a target whose vector is all zeros is masked."""
        candidates = targets.candidates
        assert candidates is not None
        assert candidates.vectors is not None
        predictions = self.predict(states).flatten(0, -2)  # [N, E]
        no_bias = torch.zeros_like(candidates.log_chance)
        return sampled_loss(predictions, candidates.vectors, no_bias, candidates)


class FixedScorer(ScoreRetriever):
    """Ranks and perplexity by the scores ŷ · w, beside cosines."""

    def own_scores(
        self, layer: OutputLayer, cosines: Tensor, predictions: Tensor
    ) -> Tensor:
        # lengths are never 0, so that −∞ stays −∞
        lengths = predictions.norm(dim=1, keepdim=True).clamp(min=NORM)
        cosines.mul_(lengths.to(cosines.device))
        return cosines.mul_(self.lengths.clamp(min=NORM))


@dataclass(frozen=True)
class FixedSettings(LinearSettings):
    """The sampled softmax with the frozen vectors of `data.target_vectors`."""

    kind: ClassVar[str] = "fixed"
    retriever: ClassVar[type[Retriever]] = FixedScorer

    samples: Samples = 8192

    @property
    def candidates(self) -> SampleSettings:
        """Types that are drawn from the whole lexicon."""
        return SampleSettings(self.samples)

    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> FixedOutput:
        return FixedOutput(projection_size, targets.size)
