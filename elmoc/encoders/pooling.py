"""Pooling: the layer states of words, from the states of the units (subwords) that they
are written in.

Letters: m units, n words, W width.
"""

import torch
from torch import Tensor

# The state of a word's first unit, of its last, or the mean of all.
POOLINGS = ("first", "last", "mean")


def pooled(states: Tensor, bounds: Tensor, pooling: str) -> Tensor:
    """[..., n, W]: the states of words.

    Args:
        states: [..., m, W], of units.
        bounds: int64 [n + 1]: where the units of each word begin, and after them where
            the last word ends.
        pooling: one of `POOLINGS`; the mean alone is of words without units, too.
    """
    bounds = bounds.to(states.device)
    if pooling == "first":
        return states[..., bounds[:-1], :]
    if pooling == "last":
        return states[..., bounds[1:] - 1, :]
    # [n], and the word [m] of each unit
    counts = bounds.diff()
    words = torch.arange(len(counts), device=states.device).repeat_interleave(counts)
    zeros = states.new_zeros(*states.shape[:-2], len(counts), states.shape[-1])
    sums = zeros.index_add_(-2, words, states[..., : len(words), :])
    # the mean of no units is zeros
    return sums / counts.clamp(min=1).unsqueeze(1)
