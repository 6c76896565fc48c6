"""What is the continuous-output loss? (Li et al. 2019, Eq. 2, with the cosine distance.)"""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F


class CosineLoss(NamedTuple):
    """The loss of a batch, and what it was taken over (as sums, to which other processes add theirs)."""

    total: Tensor
    """Scalar: Σ 1 − cos(prediction, target) over the counted targets."""
    counted: Tensor
    """Scalar: targets that have a direction."""
    masked: Tensor
    """Scalar: targets whose vector is all zeros; they have no direction and are left out."""

    @property
    def mean(self) -> Tensor:
        """Scalar: over the counted targets; 0 when none is counted."""
        return self.total / self.counted.clamp(min=1)


def cosine_loss(predictions: Tensor, targets: Tensor) -> CosineLoss:
    """The cosine distance between predictions and targets, both [..., E]."""
    has_direction = targets.any(dim=-1)  # [...]
    cosine = F.cosine_similarity(predictions.float(), targets, dim=-1)  # [...]
    counted = has_direction.sum()
    total = ((1 - cosine) * has_direction).sum()
    return CosineLoss(total, counted, has_direction.numel() - counted)
