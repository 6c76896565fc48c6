"""Distances of predicted vectors to the vectors of the words that are true.

A target whose vector is all zeros has none: it is masked. Letters: N targets, U candidates, E width of vectors.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from pretrain.output_layers import Candidates, Loss

NORM = 1e-8
"""Norms are bounded from below, as in `F.cosine_similarity`, so that a vector of zeros has finite gradients."""
NO_CANDIDATE = -1e9
"""The score of what is none; finite, so that a window without any candidate has finite gradients."""


def unit(vectors: Tensor) -> Tensor:
    """Vectors [..., E] divided by their lengths."""
    return F.normalize(vectors, dim=-1, eps=NORM)


def sum_of_known(losses: Tensor, targets: Tensor) -> Loss:
    """Losses [...] summed over the targets [..., E] that have a vector."""
    known = targets.any(dim=-1)  # [...]
    counted = known.sum()
    return Loss((losses * known).sum(), counted, known.numel() - counted)


def cosine_loss(predictions: Tensor, targets: Tensor) -> Loss:
    """Σ 1 − cos(prediction, target); both are [..., E]. A prediction of zeros has a cosine of 0."""
    return sum_of_known(1 - F.cosine_similarity(predictions.float(), targets, dim=-1, eps=NORM), targets)


def l2_loss(predictions: Tensor, targets: Tensor) -> Loss:
    """Σ ‖prediction − target‖₂ (Li et al. 2019, Section 3); both are [..., E]. Of equal vectors the gradient is 0."""
    return sum_of_known(torch.linalg.vector_norm(predictions.float() - targets, dim=-1), targets)


def max_margin_loss(predictions: Tensor, candidates: Candidates, *, margin: float) -> Loss:
    """Σ max(0, margin + cos(prediction, other) − cos(prediction, target)) over predictions [..., E].

    The other word is that candidate for which cos(prediction, other) − cos(target, other) is greatest: nearest to what
    was predicted while far from the truth (Lazaridou et al. 2015; Kumar and Tsvetkov 2019 take the loss over for
    continuous outputs). A target without any other candidate has a loss of 0.
    """
    assert candidates.vectors is not None
    rows = unit(candidates.vectors)  # [U, E]
    known = candidates.vectors.any(dim=-1) & candidates.log_chance.isfinite()  # [U]
    places = candidates.places.flatten()  # [N]
    with torch.autocast(predictions.device.type, enabled=False):
        cosines = unit(predictions.float().flatten(0, -2)) @ rows.T  # [N, U]
        with torch.no_grad():
            none = ~known | (torch.arange(len(rows), device=rows.device) == places.unsqueeze(1))  # [N, U]
            other = (cosines - (rows @ rows.T)[places]).masked_fill(none, NO_CANDIDATE).argmax(dim=1, keepdim=True)
    own = cosines.gather(1, places.unsqueeze(1))  # [N, 1]
    losses = F.relu(margin + cosines.gather(1, other) - own).masked_fill(none.gather(1, other), 0)[:, 0]
    counted = known[places]
    return Loss((losses * counted).sum(), counted.sum(), (~counted).sum())
