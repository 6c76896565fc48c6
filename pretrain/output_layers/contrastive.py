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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import (
    TYPES_OF_TARGETS,
    Loss,
    OutputLayer,
    Targets,
    log_frequencies,
)
from pretrain.output_layers.continuous import (
    NO_CANDIDATE,
    LinearOutput,
    LinearSettings,
    unit,
)
from pretrain.output_layers.retrieval import Retriever, perplexity, retrieval

# Below, one candidate takes all of the softmax; above, cosines hardly tell candidates
# apart.
LEAST_TEMPERATURE = 0.01
MOST_TEMPERATURE = 1.0
LOG_SPAN = math.log(MOST_TEMPERATURE / LEAST_TEMPERATURE)
# The label of a target that is left out of the loss.
MASKED = -100
# The metrics of ranks.
RANKED = ("accuracy_at_1", "accuracy_at_10", "reciprocal_rank")


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
        true = torch.where(counted, labels, MASKED)
        total = F.cross_entropy(logits, true, ignore_index=MASKED, reduction="sum")
        if self.settings.cosine_weight:
            own = cosines.gather(1, labels.unsqueeze(1))[:, 0]  # [N]
            total = total + self.settings.cosine_weight * ((1 - own) * counted).sum()
        return Loss(total, counted.sum(), (~counted).sum())


class ContrastiveScorer:
    """Ranks and perplexity by the layer's own scores f_u, beside ranks by cosine alone,
    and cosines.
    """

    def __init__(self, corpus: Corpus, retriever: Retriever) -> None:
        self.retriever = retriever
        frequencies = log_frequencies(corpus.counts)[: len(retriever.known)]
        self.log_frequency = torch.from_numpy(frequencies.astype(np.float32))  # [K]

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """Metrics of predictions [N, E] of the types `ids` [N]; those by cosine alone
        are named `cosine_…`.

        The perplexity is of the targets among the candidates; the constant prediction
        is their frequencies.
        """
        assert isinstance(layer, ContrastiveOutput)
        retriever = self.retriever
        frequencies = self.log_frequency.to(retriever.candidates.device)
        bias = layer.frequency_weight * frequencies  # [K]
        targets = torch.from_numpy(ids.astype(np.int64))
        # of each target by cosine and by score, 0 where it is no candidate
        by_cosine = torch.zeros_like(targets)
        ranks = torch.zeros_like(targets)
        likelihoods = torch.zeros(len(ids))
        for block, cosines, true in retriever.scores(unit(predictions), ids):
            by_cosine[block] = (cosines >= true).sum(dim=1).cpu()
            # in place: a block is hundreds of MB
            scores = cosines.div_(layer.temperature).add_(bias)
            true = scores.gather(1, targets[block].to(scores.device).unsqueeze(1))
            ranks[block] = (scores >= true).sum(dim=1).cpu()
            likelihoods[block] = (true[:, 0] - scores.logsumexp(dim=1)).cpu()
        metrics = retriever.metrics(by_cosine, predictions, ids, parts)
        known = self.log_frequency[retriever.known]
        constants = self.log_frequency - known.logsumexp(dim=0)  # [K]
        inside = ranks > 0  # targets that are candidates
        for name, part in parts.items():
            ranked = inside[part]
            own = metrics[name]
            own |= {f"cosine_{metric}": own[metric] for metric in RANKED}
            own |= retrieval(ranks[part])
            own["perplexity"] = perplexity(likelihoods[part][ranked])
            constant = constants[targets[part][ranked]]
            own["constant_perplexity"] = perplexity(constant)
        return metrics


@dataclass(frozen=True)
class ContrastiveSettings(LinearSettings):
    """The contrastive output for the target table `data.target_vectors`."""

    kind: ClassVar[str] = "contrastive"

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

    def scorer(
        self,
        *,
        corpus: Corpus,
        targets: LexiconTable,
        candidates: int,
        device: torch.device,
    ) -> ContrastiveScorer:
        return ContrastiveScorer(corpus, Retriever(corpus, targets, candidates, device))
