"""The plain LSTM encoder: the equations gate by gate, windows and padding."""

import torch
from elmoc.encoders.plain_lstm import PlainLstm, PlainLstmSizes
from tests.references import assert_of_equations, lstm_states
from torch import Tensor


def stack_of(layers: int = 2, dropout: float = 0.0) -> PlainLstm:
    torch.manual_seed(1)
    return PlainLstm(PlainLstmSizes(projection_size=5, layers=layers, dropout=dropout)).double()


def plain_states(stack: PlainLstm, x: Tensor, masks: list[Tensor] | None = None) -> list[Tensor]:
    """The L + 1 layer states of one sentence [T, P]."""
    states = [x]
    read = x if masks is None else x * masks[0]
    for index, layer in enumerate(stack.layers):
        read = torch.stack(lstm_states(layer, read))
        if masks is not None:
            read = read * masks[index + 1]
        states.append(read)
    return states


def test_states_and_gradients_are_those_of_the_equations() -> None:
    assert_of_equations(stack_of(dropout=0.4), plain_states, states=1e-9, gradients=1e-8)


def test_the_defaults_are_the_papers() -> None:
    sizes = PlainLstmSizes()
    assert sizes.description == "plain LSTM of 1 × 2048"
    with torch.device("meta"):
        stack = sizes.build(fast=True)
    assert sum(weight.numel() for weight in stack.parameters()) == 4 * 2048 * (2048 + 2048 + 2)
