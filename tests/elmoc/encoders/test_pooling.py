"""Pooling: the states of words against plain loops over their units."""

import pytest
import torch
from elmoc.encoders.pooling import POOLINGS, pooled


@pytest.mark.parametrize("lengths", [[1], [1, 3, 2], [2, 2], []])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_states_of_words_are_those_of_a_plain_loop(pooling: str, lengths: list[int]) -> None:
    states = torch.randn(3, sum(lengths), 4, requires_grad=True)
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    found = pooled(states, bounds, pooling)
    plain = {"first": lambda each: each[:, 0], "last": lambda each: each[:, -1], "mean": lambda each: each.mean(dim=1)}
    words = [plain[pooling](each) for each in states.split(lengths, dim=1)] if lengths else []
    expected = torch.stack(words, dim=1) if words else states.new_empty(3, 0, 4)
    torch.testing.assert_close(found, expected)
    if lengths:
        gradients = [torch.autograd.grad(each.square().sum(), states)[0] for each in (found, expected)]
        torch.testing.assert_close(*gradients)
