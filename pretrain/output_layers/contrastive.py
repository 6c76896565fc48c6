"""Contrastive output: how likely is the next word among the types of a window, by
cosines with its predicted vector?

The score of a type u after a context c is f_u = cos(ŷ, w_u)/τ + a · log p_u, with a
learned temperature τ and a learned weight a of the log frequency, which cosines alone
could not express. The loss is the cross-entropy of the softmax over
the candidates of a window: a sampled softmax, whose samples are the targets of the
other streams (`TargetSampler`).

A frequent type is among the candidates more often than a rare one. In expectation over
windows, the softmax of f_u − log Q_u has its optimum where f_u = log P(u | c) +
constant, Q_u being the chance that u is a candidate because of
other targets: given c and the set of candidates S, the target is w with a probability
in proportion to P(w | c) · Pr[S, or S without w, comes from the others] ∝ P(w | c) /
Q_w (Bengio & Senécal 2008; Jean et al. 2015). That holds for the true type as well as
for others, as long as types become candidates independently of each other. Without the
correction, the optimum is log P(u | c) − log Q_u + constant: the pointwise mutual
information for types so rare that Q_u ∝ p_u (as of InfoNCE, van den Oord et al. 2018),
and the plain log-probability for types that are in every window.
Letters: B streams, T time, P projection, E width of target vectors, N targets, U
candidates.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import TYPES_OF_TARGETS, Loss, OutputLayer, Targets
from pretrain.output_layers.continuous import NO_CANDIDATE, LinearOutput, LinearSettings
from pretrain.output_layers.retrieval import Retriever, ScoreRetriever, unit

# Below, one candidate takes all of the softmax; above, cosines hardly tell candidates
# apart.
LEAST_TEMPERATURE = 0.01
MOST_TEMPERATURE = 1.0
LOG_SPAN = math.log(MOST_TEMPERATURE / LEAST_TEMPERATURE)


class ContrastiveOutput(LinearOutput):
    """The linear layer, with a temperature and a weight of log frequencies."""

    def __init__(
        self, projection_size: int, vector_size: int, settings: "ContrastiveSettings"
    ) -> None:
        super().__init__(projection_size, vector_size)
        self.settings = settings
        share = math.log(settings.temperature / LEAST_TEMPERATURE) / LOG_SPAN
        logit = math.log(share / (1 - share))
        self.temperature_logit = nn.Parameter(torch.tensor(logit))
        self.frequency_weight = nn.Parameter(torch.ones(()))

    @property
    def temperature(self) -> Tensor:
        """Scalar τ: its log is between two bounds by a sigmoid, so that it neither
        collapses nor stops learning.
        """
        share = torch.sigmoid(self.temperature_logit)
        return LEAST_TEMPERATURE * torch.exp(LOG_SPAN * share)

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`; a type whose vector is all zeros has no direction: it is
        no candidate, and is masked.
        """
        candidates = targets.candidates
        assert candidates is not None
        assert candidates.vectors is not None
        predictions = unit(self.predict(states).flatten(0, -2))  # [N, E]
        # in float32: cosines near 1 are 0.004 apart in bf16, or 0.4 divided by τ
        with torch.autocast(states.device.type, enabled=False):
            cosines = predictions @ unit(candidates.vectors).T  # [N, U]
        known = candidates.vectors.any(dim=-1)  # [U]
        bias = self.frequency_weight * candidates.log_frequency - candidates.log_chance
        bias = bias.masked_fill(~known, NO_CANDIDATE)
        logits = cosines / self.temperature + bias  # [N, U]
        labels = candidates.labels.flatten()
        counted = known[labels]  # [N]
        # the label that PyTorch leaves out
        true = torch.where(counted, labels, -100)
        total = nn.functional.cross_entropy(logits, true, reduction="sum")
        if self.settings.cosine_weight:
            own = cosines.gather(1, labels.unsqueeze(1))[:, 0]  # [N]
            total = total + self.settings.cosine_weight * ((1 - own) * counted).sum()
        return Loss(total, counted.sum(), (~counted).sum())


class ContrastiveScorer(ScoreRetriever):
    """Ranks and perplexity by the scores f_u, beside cosines."""

    def own_scores(
        self, layer: OutputLayer, cosines: Tensor, predictions: Tensor
    ) -> Tensor:
        assert isinstance(layer, ContrastiveOutput)
        bias = layer.frequency_weight * self.log_frequency.to(cosines.device)  # [K]
        return cosines.div_(layer.temperature).add_(bias)


@dataclass(frozen=True)
class ContrastiveSettings(LinearSettings):
    """The contrastive output for the target table `data.target_vectors`."""

    kind: ClassVar[str] = "contrastive"
    retriever: ClassVar[type[Retriever]] = ContrastiveScorer

    temperature: Annotated[
        float,
        Meta(
            gt=LEAST_TEMPERATURE,
            lt=MOST_TEMPERATURE,
            description="that a run begins with; it is learned, between 0.01 and 1",
        ),
    ] = 0.05
    cosine_weight: Annotated[
        float,
        Meta(
            ge=0,
            le=1e3,
            description="of the cosine distance to the target's vector, which is "
            "added to the loss",
        ),
    ] = 0.0

    @property
    def candidates(self) -> str:
        return TYPES_OF_TARGETS

    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> ContrastiveOutput:
        return ContrastiveOutput(projection_size, targets.size, self)
