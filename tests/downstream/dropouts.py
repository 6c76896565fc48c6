"""Tests of single dropouts: a model with all others off."""

from collections.abc import Callable

import torch
from torch import Tensor


def leave_one_dropout(model: torch.nn.Module, name: str, share: float = 0.5) -> None:
    """Put a model in training with all dropouts off but that of one module, by its name in the model.

    A module is a dropout, or has a number `dropout`, as LSTMs do.
    """
    model.train()
    found = []
    for own, module in model.named_modules():
        attribute = "p" if isinstance(module, torch.nn.Dropout) else "dropout"
        if isinstance(getattr(module, attribute, None), float):
            setattr(module, attribute, share if own == name else 0.0)
            found.append(own)
    assert name in found, f"{name} is none of the dropouts {found}"


def differ(compute: Callable[[], Tensor]) -> bool:
    """Whether a computation gives something else the second time."""
    with torch.no_grad():
        return not torch.equal(compute(), compute())
