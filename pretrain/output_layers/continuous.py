"""Continuous output: how far is the predicted vector from the fixed vector of the next
word (Li et al. 2019, Eq. 2)?

The contrastive and fixed output layers predict vectors, too: they share the linear
layer and the settings of it here.
A target whose vector is all zeros has no direction: it is masked.
Letters: N targets, U candidates, P projection, E width of vectors.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import (
    TYPES_OF_TARGETS,
    Candidates,
    Loss,
    OutputLayer,
    OutputLayerSettings,
    Targets,
)
from pretrain.output_layers.retrieval import NORM, Retriever, unit
from pretrain.output_layers.von_mises_fisher import log_partition

# The score of a type that is no candidate; finite, so that a window without any
# candidate has finite gradients.
NO_CANDIDATE = -1e9


@dataclass(frozen=True)
class LinearSettings(OutputLayerSettings):
    """What layers that predict vectors of `data.target_vectors` have in common.

    retriever: scores their predictions.
    """

    reads_target_vectors: ClassVar[bool] = True
    retriever: ClassVar[type[Retriever]] = Retriever

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """The target vectors by origin and fingerprint, and how they were processed."""
        return {"kind": self.kind, **asdict(targets.source)}

    def scorer(
        self,
        *,
        corpus: Corpus,
        counts_read: np.ndarray,
        targets: LexiconTable,
        candidates: int,
        device: torch.device,
    ) -> Retriever:
        """Cosines and ranks."""
        return self.retriever(counts_read, targets, candidates, device)


class LinearOutput(OutputLayer):
    """ŷ_t = W_y out_t + b_y (Li et al. 2019, footnote 2): from top layer states [...,
    P] to vectors [..., E].
    """

    def __init__(self, projection_size: int, vector_size: int) -> None:
        super().__init__()
        linear = nn.Linear(projection_size, vector_size)
        self.weight = linear.weight  # [E, P]
        self.bias = linear.bias  # [E]

    def predict(self, states: Tensor) -> Tensor:
        """Top layer states [..., P] → predicted vectors, float32 [..., E]."""
        return F.linear(states, self.weight, self.bias).float()


def sum_of_known(losses: Tensor, known: Tensor) -> Loss:
    """Losses [...] summed over the targets that have a vector, bool [...]."""
    return Loss((losses * known).sum(), known.sum(), (~known).sum())


def cosine_loss(predictions: Tensor, targets: Tensor) -> Loss:
    """Σ 1 − cos(prediction, target); both are [..., E]. A prediction of zeros has a
    cosine of 0.
    """
    cosines = F.cosine_similarity(predictions.float(), targets, dim=-1, eps=NORM)
    return sum_of_known(1 - cosines, targets.any(dim=-1))


def l2_loss(predictions: Tensor, targets: Tensor) -> Loss:
    """Σ ‖prediction − target‖₂ (Li et al. 2019, Section 3); both are [..., E]. Of equal
    vectors the gradient is 0.
    """
    distances = torch.linalg.vector_norm(predictions.float() - targets, dim=-1)
    return sum_of_known(distances, targets.any(dim=-1))


def von_mises_fisher_loss(
    predictions: Tensor,
    targets: Tensor,
    *,
    length_weight: float = 0.0,
    product_weight: float = 1.0,
) -> Loss:
    """Σ log(C_m(0)/C_m(‖ŷ‖)) − λ₂ ŷ · w/‖w‖ + λ₁ ‖ŷ‖ for predictions ŷ and targets w
    [..., E]; λ₂ = 1 and λ₁ = 0: vMF.

    `length_weight` is λ₁ and `product_weight` λ₂ of Kumar and Tsvetkov (2019). C_m(0)
    is a constant, the density of a direction drawn at random, so that a prediction of
    zeros has a loss of 0.
    """
    predictions = predictions.float()
    # in float64, since squares overflow in float32
    lengths = torch.linalg.vector_norm(predictions.double(), dim=-1)  # [...]
    products = (predictions * unit(targets)).sum(dim=-1)
    partition = log_partition(lengths.square(), predictions.shape[-1])
    losses = partition - product_weight * products + length_weight * lengths
    return sum_of_known(losses.float(), targets.any(dim=-1))


def max_margin_loss(
    predictions: Tensor, candidates: Candidates, *, margin: float
) -> Loss:
    """Σ max(0, margin + cos(prediction, other) − cos(prediction, target)) over
    predictions [..., E].

    The other word is that candidate for which cos(prediction, other) − cos(target,
    other) is greatest: nearest to what was predicted while far from the truth
    (Lazaridou et al. 2015; Kumar and Tsvetkov 2019 take the loss over for continuous
    outputs). A target without any other candidate has a loss of 0.
    """
    assert candidates.vectors is not None
    rows = unit(candidates.vectors)  # [U, E]
    known = candidates.vectors.any(dim=-1)  # [U]
    labels = candidates.labels.flatten()  # [N]
    # in float32: two cosines that are nearly equal would be the same in bf16
    with torch.autocast(predictions.device.type, enabled=False):
        cosines = unit(predictions.float().flatten(0, -2)) @ rows.T  # [N, U]
        with torch.no_grad():
            itself = torch.arange(len(rows), device=rows.device) == labels.unsqueeze(1)
            none = ~known | itself  # [N, U]
            misled = cosines - (rows @ rows.T)[labels]
            misled.masked_fill_(none, NO_CANDIDATE)
            other = misled.argmax(dim=1, keepdim=True)  # [N, 1]
    own = cosines.gather(1, labels.unsqueeze(1))  # [N, 1]
    losses = F.relu(margin + cosines.gather(1, other) - own)
    # where there is no candidate, the greatest is one that is none
    losses = losses.masked_fill(none.gather(1, other), 0)[:, 0]
    return sum_of_known(losses, known[labels])


class ContinuousOutput(LinearOutput):
    """The linear layer with the distance that its settings name."""

    def __init__(
        self, projection_size: int, vector_size: int, settings: "ContinuousSettings"
    ) -> None:
        super().__init__(projection_size, vector_size)
        losses: dict[str, Callable[[Tensor, Any], Loss]] = {
            "cosine": cosine_loss,
            "l2": l2_loss,
            "von_mises_fisher": partial(
                von_mises_fisher_loss,
                length_weight=settings.length_weight,
                product_weight=settings.product_weight,
            ),
            "max_margin": partial(max_margin_loss, margin=settings.margin),
        }
        self.loss = losses[settings.loss]

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`; a target whose vector is all zeros has no direction and is
        masked.
        """
        # There are candidates where the loss asks for them, and vectors elsewhere.
        words = targets.vectors if targets.candidates is None else targets.candidates
        return self.loss(self.predict(states), words)


@dataclass(frozen=True)
class ContinuousSettings(LinearSettings):
    """The continuous output for the target table `data.target_vectors`."""

    kind: ClassVar[str] = "continuous"

    loss: Annotated[
        Literal["cosine", "l2", "von_mises_fisher", "max_margin"],
        Meta(
            description="`cosine`, 1 − cos(ŷ, w); `l2`, ‖ŷ − w‖; `von_mises_fisher`, "
            "the negative log-likelihood of w's direction; `max_margin`, by how much "
            "the true word's cosine fails to be `margin` above another word's of the "
            "window"
        ),
    ] = "cosine"
    length_weight: Annotated[
        float,
        Meta(
            ge=0,
            le=1e3,
            description="λ₁ of `von_mises_fisher`, the weight of ‖ŷ‖; 0 leaves it out",
        ),
    ] = 0.02
    product_weight: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="λ₂ of `von_mises_fisher`, the weight of ŷ · w; 1 leaves the "
            "likelihood as it is",
        ),
    ] = 0.1
    margin: Annotated[float, Meta(gt=0, le=2, description="γ of `max_margin`")] = 0.5

    @property
    def metric(self) -> str:
        """The cosine; but `max_margin` is about the order of words alone."""
        return super().metric if self.loss == "max_margin" else "cosine"

    @property
    def candidates(self) -> str | None:
        """The types of a window's targets: `max_margin` finds another word there."""
        return TYPES_OF_TARGETS if self.loss == "max_margin" else None

    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> ContinuousOutput:
        return ContinuousOutput(projection_size, targets.size, self)

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """That of all linear layers, and the loss where it is not the cosine."""
        loss = {} if self.loss == "cosine" else {"loss": self.loss}
        return super().record(corpus=corpus, targets=targets) | loss
