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

    hidden: Tensor  # [B, P]: the last output, which is also what the next step reads
    cell: Tensor  # [B, C]


class RecurrenceWeights(NamedTuple):
    """What a layer brings to the recurrence: C cell, P projection, I the width of what
    it reads.
    """

    input: Tensor  # W_x [4C, I], gates in the order i, f, g, o
    hidden: Tensor  # W_h [4C, P]
    bias: Tensor  # [4C]
    projection: Tensor  # W_p [P, C]
    norm_weight: Tensor | None  # [P]; None switches layer normalisation off
    norm_bias: Tensor | None  # [P]


class RecurrenceOptions(NamedTuple):
    """How a layer runs over a window."""

    cell_clip: float  # 0 switches a clip off
    projection_clip: float
    norm_epsilon: float  # of the layer normalisation
    # [B, P], one mask for the whole window (already divided by the keep probability),
    # or None.
    dropout_mask: Tensor | None
    # int [B], for batches padded at the end, or None: past its length a stream's
    # outputs are zero and its state stands still.
    lengths: Tensor | None


# What steps through time, as `plain_recurrence` does.
Recurrence = Callable[
    [Tensor, LSTMState, RecurrenceWeights, RecurrenceOptions], tuple[Tensor, LSTMState]
]


def plain_recurrence(
    inputs: Tensor,
    state: LSTMState,
    weights: RecurrenceWeights,
    options: RecurrenceOptions,
) -> tuple[Tensor, LSTMState]:
    """One layer over a window.

    For every step t:

        i, f, g, o = W_x a_t + W_h h_{t-1} + b
        c_t = clip(σ(i)·tanh(g) + σ(f)·c_{t-1}, ±cell_clip)
        u_t = clip(W_p (σ(o)·tanh(c_t)), ±projection_clip)
        h_t = LayerNorm(u_t) · dropout_mask

    From inputs a [B, T, I] and the state before the first step to the outputs h [B, T,
    P] and the state after the last.
    """
    cell_clip, projection_clip, norm_epsilon, dropout_mask, lengths = options
    hidden, cell = state
    outputs = []
    input_gates = F.linear(
        inputs, weights.input, weights.bias
    )  # [B, T, 4C]: the input product of all steps at once
    for step, gates_x in enumerate(input_gates.unbind(1)):  # [B, 4C]
        gates = gates_x + F.linear(hidden, weights.hidden)  # [B, 4C]
        i, f, g, o = gates.chunk(4, dim=1)  # [B, C] each
        new_cell = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * cell
        if cell_clip:
            new_cell = new_cell.clamp(-cell_clip, cell_clip)
        new_hidden = F.linear(
            torch.sigmoid(o) * torch.tanh(new_cell), weights.projection
        )  # [B, P]
        if projection_clip:
            new_hidden = new_hidden.clamp(-projection_clip, projection_clip)
        if weights.norm_weight is not None:
            new_hidden = F.layer_norm(
                new_hidden,
                new_hidden.shape[-1:],
                weights.norm_weight,
                weights.norm_bias,
                norm_epsilon,
            )
        if dropout_mask is not None:
            new_hidden = new_hidden * dropout_mask
        if lengths is None:
            hidden = new_hidden
            cell = new_cell
            outputs.append(hidden)
        else:
            active = (step < lengths).unsqueeze(1)  # [B, 1]
            hidden = torch.where(active, new_hidden, hidden)
            cell = torch.where(active, new_cell, cell)
            outputs.append(
                torch.where(active, new_hidden, torch.zeros_like(new_hidden))
            )
    if not outputs:
        return inputs.new_empty(len(hidden), 0, hidden.shape[1]), LSTMState(
            hidden, cell
        )
    return torch.stack(outputs, dim=1), LSTMState(hidden, cell)
