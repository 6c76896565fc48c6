"""Scalar mix: the trained weighting of layers by which a task reads an encoder (Peters et al. 2018, equation 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

NORM_EPSILON = 1e-13  # AllenNLP's, which is added to the variance


class ScalarMix(nn.Module):
    """gamma · Σ_l softmax(weights)_l · states_l, as AllenNLP's module of that name.

    Args:
        layers: how many there are.
        weights: before the softmax; zeros, which give the mean, where None is given.
        layer_norm: whether each layer is first brought to mean 0 and variance 1, over all numbers of a batch that are
            not padding.
        trainable: whether weights and gamma are trained.
    """

    def __init__(
        self, layers: int, *, weights: Sequence[float] | None = None, layer_norm: bool = False, trainable: bool = True
    ) -> None:
        super().__init__()
        values = torch.zeros(layers) if weights is None else torch.tensor(weights, dtype=torch.get_default_dtype())
        self.weights = nn.Parameter(values, requires_grad=trainable)  # [L + 1]
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)
        self.layer_norm = layer_norm

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Layer states [B, L + 1, T, D], and the bool mask [B, T] of what is not padding → [B, T, D]."""
        if self.layer_norm:
            mask = torch.ones_like(states[:, 0, :, 0], dtype=torch.bool) if mask is None else mask
            kept = mask[:, None, :, None].to(states.dtype)  # [B, 1, T, 1]
            count = mask.sum().clamp(min=1) * states.shape[-1]
            mean = (states * kept).sum((0, 2, 3), keepdim=True) / count  # [1, L + 1, 1, 1]
            variance = ((states - mean).square() * kept).sum((0, 2, 3), keepdim=True) / count
            states = (states - mean) / (variance + NORM_EPSILON).sqrt()
        return self.gamma * torch.einsum("l,bltd->btd", self.weights.softmax(0), states)
