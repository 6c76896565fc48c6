"""What is the continuous-output loss? (Li et al. 2019, Eq. 2, with the cosine distance.)"""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F


class CosineLoss(NamedTuple):
    """The loss of a batch, and what it was taken over."""

    loss: Tensor
    """Scalar: mean over the counted targets of 1 − cos(prediction, target); 0 when none is counted."""
    counted: Tensor
    """Scalar: targets that have a direction."""
    masked: Tensor
    """Scalar: targets whose vector is all zeros; they have no direction and are left out."""


def cosine_loss(predictions: Tensor, targets: Tensor) -> CosineLoss:
    """The mean cosine distance between predictions and targets, both [..., E]."""
    has_direction = targets.any(dim=-1)  # [...]
    cosine = F.cosine_similarity(predictions.float(), targets, dim=-1)  # [...]
    counted = has_direction.sum()
    loss = ((1 - cosine) * has_direction).sum() / counted.clamp(min=1)
    return CosineLoss(loss, counted, has_direction.numel() - counted)
