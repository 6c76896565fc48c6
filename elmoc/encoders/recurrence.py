"""Recurrence: how one LSTM layer with projection and layer normalisation steps through
time.

This is the reference: plain PyTorch, differentiated by autograd. A layer is built with
a `Recurrence`: this one, or a faster function that equals it.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class LSTMState(NamedTuple):
    """A layer's recurrent state."""

    # [B, P]: the last output, which is also what the next step reads
    hidden: Tensor
    # [B, C]
    cell: Tensor


class RecurrenceWeights(NamedTuple):
    """The weights of a layer: C cell, P projection, I the width of its input."""

    # W_x [4C, I], gates in the order i, f, g, o
    input: Tensor
    # W_h [4C, P]
    hidden: Tensor
    # [4C]
    bias: Tensor
    # W_p [P, C]
    projection: Tensor
    # [P]; None switches layer normalisation off
    norm_weight: Tensor | None
    # [P]
    norm_bias: Tensor | None


class RecurrenceOptions(NamedTuple):
    """How a layer runs over a window."""

    # 0 switches a clip off
    cell_clip: float
    projection_clip: float
    # added to the variance by the layer normalisation
    norm_epsilon: float
    # [B, P], one mask for the whole window (already divided by the keep probability),
    # or None.
    dropout_mask: Tensor | None


# A function that steps through time as `plain_recurrence` does.
Recurrence = Callable[
    [Tensor, LSTMState, RecurrenceWeights, RecurrenceOptions], tuple[Tensor, LSTMState]
]


def plain_recurrence(
    inputs: Tensor,
    state: LSTMState,
    weights: RecurrenceWeights,
    options: RecurrenceOptions,
) -> tuple[Tensor, LSTMState]:
    """One layer over a window (Li et al. 2019, Section 4.1).

    For every step t:

        i, f, g, o = W_x a_t + W_h h_{t-1} + b
        c_t = clip(σ(i)·tanh(g) + σ(f)·c_{t-1}, ±cell_clip)
        u_t = clip(W_p (σ(o)·tanh(c_t)), ±projection_clip)
        h_t = LayerNorm(u_t) · dropout_mask

    Args:
        inputs: a, [B, T, I].
        state: before the first step.
        weights: of the layer.
        options: of the window.

    Returns:
        The outputs h [B, T, P], and the state after the last step.
    """
    cell_clip, projection_clip, norm_epsilon, dropout_mask = options
    hidden, cell = state
    outputs = []
    # [B, T, 4C]: the input product of all steps at once
    input_gates = F.linear(inputs, weights.input, weights.bias)
    for gates_x in input_gates.unbind(1):
        # [B, 4C]
        gates = gates_x + F.linear(hidden, weights.hidden)
        # [B, C] each
        i, f, g, o = gates.chunk(4, dim=1)
        cell = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * cell
        if cell_clip:
            cell = cell.clamp(-cell_clip, cell_clip)
        gated_cell = torch.sigmoid(o) * torch.tanh(cell)
        # [B, P]
        hidden = F.linear(gated_cell, weights.projection)
        if projection_clip:
            hidden = hidden.clamp(-projection_clip, projection_clip)
        if weights.norm_weight is not None:
            hidden = F.layer_norm(
                hidden,
                hidden.shape[-1:],
                weights.norm_weight,
                weights.norm_bias,
                norm_epsilon,
            )
        if dropout_mask is not None:
            hidden = hidden * dropout_mask
        outputs.append(hidden)
    return torch.stack(outputs, dim=1), LSTMState(hidden, cell)
