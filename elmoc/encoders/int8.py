"""Inference in int8: how numbers become integers of 8 bits, and the reference of the
kernels, in plain PyTorch.

Letters: K the depth of a product, M words of all sentences, P projection, L layers.
"""

from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from elmoc.encoders.recurrence import plain_recurrence

# The least number that a row is divided by: rows of zeros stay zeros.
_LEAST = 1e-30


def in_8_bits(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [..., K] as integers within ±127, still in float32, and the scale of each
    row [..., 1], by which they are multiplied.

    Weights that `elmoc pack` stored in int8 become the stored integers.
    """
    largest = rows.abs().amax(dim=-1, keepdim=True)
    integers = (rows * (127 / largest.clamp(min=_LEAST))).round()
    return integers, largest / 127


def int8_linear(rows: Tensor, weight: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    """The product of rows in 8 bits with a weight whose numbers are rounded already."""
    integers, scale = in_8_bits(rows)
    return F.linear(integers, weight) * scale + bias


class PlainInt8:
    """A `PreparedEncoder` for LSTM layers: the plain recurrence with products in int8.

    Args:
        stack: an `LstmStack`, which is copied.
    """

    def __init__(self, stack: Any) -> None:
        self._stack = deepcopy(stack).eval()
        for layer in self._stack.layers:
            layer.recurrence = partial(plain_recurrence, linear=int8_linear)
        for weight in self._stack.parameters():
            if weight.ndim == 2:
                integers, scale = in_8_bits(weight.detach())
                weight.data = integers * scale

    def __call__(
        self, layer_states: Tensor, lengths: Tensor, *, backward: bool, threads: int
    ) -> None:
        """See `PreparedEncoder`."""
        for states in filter(Tensor.numel, layer_states.split(lengths.tolist(), dim=1)):
            read = states.flip(1) if backward else states
            # of a batch of one: L + 1 times [1, words, P]
            made = torch.cat(self._stack(read[:1]).layer_states)
            states.copy_(made.flip(1) if backward else made)
