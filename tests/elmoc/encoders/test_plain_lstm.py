"""The plain LSTM encoder: the equations gate by gate, windows and padding."""

import torch
from elmoc.encoders.plain_lstm import PlainLstm, PlainLstmSizes
from tests.references import lstm_states
from torch import Tensor


def stack_of(layers: int = 2, dropout: float = 0.0) -> PlainLstm:
    torch.manual_seed(1)
    sizes = PlainLstmSizes(projection_size=5, layers=layers, dropout=dropout)
    return PlainLstm(sizes).double()


def plain_states(stack: PlainLstm, x: Tensor, masks: list[Tensor] | None = None) -> list[Tensor]:
    """The L + 1 layer states of one sentence [T, P]."""
    states = [x]
    for index, layer in enumerate(stack.layers):
        outputs = torch.stack(lstm_states(layer, states[-1]))
        states.append(outputs if masks is None else outputs * masks[index])
    return states


def test_states_and_gradients_are_those_of_the_equations() -> None:
    stack = stack_of(dropout=0.4)
    x = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    masks = stack.draw_dropout_masks(2, torch.Generator().manual_seed(3))
    found = stack(x, dropout_masks=masks).layer_states
    plain = [plain_states(stack, row, [mask[index] for mask in masks]) for index, row in enumerate(x)]
    expected = [torch.stack(each) for each in zip(*plain, strict=True)]
    leaves = [x, *stack.parameters()]
    gradients = []
    for states in (found, expected):
        assert len(states) == 3
        gradients.append(torch.autograd.grad(sum((each**3).sum() for each in states), leaves))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_the_defaults_are_the_papers() -> None:
    sizes = PlainLstmSizes()
    assert sizes.description == "plain LSTM of 1 × 2048"
    with torch.device("meta"):
        stack = sizes.build(fast=True)
    assert sum(weight.numel() for weight in stack.parameters()) == 4 * 2048 * (2048 + 2048 + 2)
