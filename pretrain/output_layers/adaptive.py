"""Adaptive softmax: how likely is each class, where rare classes have narrower vectors
(Grave et al. 2017)?

PyTorch's own. Letters: B streams, T time, N targets, P projection.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Loss, Targets
from pretrain.output_layers.softmax import (
    SoftmaxOutput,
    SoftmaxSettings,
    every_target,
)


class AdaptiveOutput(SoftmaxOutput):
    """The most frequent types have vectors of P numbers, types of cluster i (from 1) of
    P / reduction^i.

    A rare word's log-probability is its cluster's plus the word's within the cluster.
    """

    def __init__(
        self, projection_size: int, classes: int, cutoffs: list[int], reduction: float
    ) -> None:
        super().__init__(classes)
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            projection_size, classes, cutoffs, div_value=reduction
        )
        # Autocast has products in bf16, which PyTorch's layer cannot mix with the rest.
        for product in (self.softmax.head, *self.softmax.tail):
            product.register_forward_hook(
                lambda _, states, scores: scores.to(states[0].dtype)
            )

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`: the negative log-likelihood; no target is masked."""
        states = states.flatten(0, 1).to(self.softmax.head.weight.dtype)
        classes = self.class_of(targets.ids).flatten()
        likelihoods = self.softmax(states, classes).output  # [N]
        return every_target(-likelihoods.sum(), classes)

    def scored(
        self, states: Tensor, classes: Tensor, candidates: int
    ) -> tuple[Tensor, Tensor]:
        head = self.softmax.head(states).log_softmax(dim=1)
        parts = [head[:, : self.softmax.shortlist_size]]
        for number, tail in enumerate(self.softmax.tail):
            # a cluster without candidates, as a rule the largest one, is left out
            if self.softmax.cutoffs[number] < candidates:
                cluster = head[:, self.softmax.shortlist_size + number].unsqueeze(1)
                parts.append(tail(states).log_softmax(dim=1) + cluster)
        own = self.softmax(states, classes).output
        return torch.cat(parts, dim=1)[:, :candidates].float(), own.float()


@dataclass(frozen=True)
class AdaptiveSettings(SoftmaxSettings):
    """The adaptive softmax."""

    kind: ClassVar[str] = "adaptive"

    cutoffs: Annotated[
        tuple[int, ...],
        Meta(
            description="the first id of each cluster, ascending; those that are no "
            "class are left out"
        ),
    ] = (4_000, 40_000, 200_000)
    reduction: Annotated[
        float,
        Meta(
            ge=1,
            le=1e3,
            description="how many times narrower vectors of a cluster are than those "
            "of the one before",
        ),
    ] = 4.0

    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> AdaptiveOutput:
        classes = self.classes_of(corpus)
        cutoffs = [cutoff for cutoff in self.cutoffs if cutoff < classes]
        if not cutoffs or cutoffs[0] < 1 or cutoffs != sorted(set(cutoffs)):
            raise InputError(
                f"output_layer.cutoffs={list(self.cutoffs)!r:.100} must be ascending "
                f"numbers from 1 on, the first below the number of classes, {classes:,}"
            )
        # PyTorch would only warn, and train a cluster whose words are equally likely.
        if projection_size < self.reduction ** len(cutoffs):
            raise InputError(
                f"output_layer.reduction={self.reduction:g} leaves vectors of no "
                f"numbers to cluster {len(cutoffs)}, since encoder.projection_size is "
                f"{projection_size}: use a lower one, or fewer output_layer.cutoffs"
            )
        return AdaptiveOutput(projection_size, classes, cutoffs, self.reduction)

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """That of all softmaxes, and the clusters."""
        clusters = {"cutoffs": list(self.cutoffs), "reduction": self.reduction}
        return super().record(corpus=corpus, targets=targets) | clusters
