"""How is a stack of alternating highway LSTMs run over a batch in time that is spent on its products?

The encoder of He et al. (2017): layers read forwards and backwards in turn, the output of each step is mixed by a
learned gate with a projection of the step's input, and one dropout mask a sentence and layer is laid over the states
that go from step to step (Gal and Ghahramani 2016). Parameters are those of `allennlp_light`'s cells, and the numbers
are those of its `StackedAlternatingLstm`, which leaves each small step of each layer to autograd; here a layer is one
function with its derivative written out, and sequences stay packed from layer to layer.

Packed [N, …] means time-major: the words at place 0 of all sentences, longest sentence first, then those at place 1 of
the sentences that have one, …; `sizes` says how many there are at each place.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from allennlp_light.modules.augmented_lstm import AugmentedLSTMCell
from allennlp_light.nn.util import get_dropout_mask
from torch import Tensor
from torch.autograd.function import once_differentiable

from downstream.layers.linear import linear
from elmoc.kernels.matmul import prepare_input_gradient, prepare_linear, weight_gradient_matmul

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class AlternatingLstm(torch.nn.Module):
    """Highway LSTM layers of alternating direction, the first one forwards.

    dropout  on the states that go from step to step, one mask for each sentence and layer
    """

    def __init__(self, *, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.cells = torch.nn.ModuleList(
            AugmentedLSTMCell(hidden_size if layer else input_size, hidden_size) for layer in range(layers)
        )
        self.output_size = hidden_size
        self.dropout = dropout

    @property
    def first(self) -> torch.nn.Linear:
        """The linear layer that the inputs go through before `forward`: who has the same ones often does it once."""
        cell = self.cells[0]
        assert isinstance(cell, AugmentedLSTMCell)
        return cell.input_linearity

    def forward(self, projected: Tensor, sizes: Sequence[int]) -> Tensor:
        """What `first` makes of the inputs, [N, 6H], packed → [N, H]."""
        states = projected
        for layer, cell in enumerate(self.cells):
            assert isinstance(cell, AugmentedLSTMCell)
            if layer:
                projected = linear(states, cell.input_linearity.weight, cell.input_linearity.bias)
            mask = None
            if self.training and self.dropout:
                mask = get_dropout_mask(self.dropout, projected.new_empty(sizes[0], self.output_size))  # [B, H]
            recurrent = cell.state_linearity
            states = _HighwayLayer.apply(projected, recurrent.weight, recurrent.bias, mask, sizes, layer % 2 == 1)
        return states


class _HighwayLayer(torch.autograd.Function):
    """One layer over a packed batch.

    projected  [N, 6H]: the inputs' share of i, f, g, o and r (the gates for input and forgetting, the new memory, the
               gates for output and highway), and u, which the highway gate lets through in place of the output
    weight     [5H, H] and bias [5H]: the previous state's share of the gates
    mask       [B, H] on the previous state, or None
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        weight: Tensor,
        bias: Tensor,
        mask: Tensor | None,
        sizes: Sequence[int],
        backwards: bool,
    ) -> Tensor:
        count, size = projected.shape[0], weight.shape[1]
        steps = _steps(sizes, backwards)
        gates = projected.clone()  # [N, 6H]
        gates[:, : 5 * size] += bias
        product = prepare_linear(weight)
        scratch = projected.new_empty(max(sizes), 5 * size)
        states = projected.new_zeros(count, size)  # masked states of the steps before
        memories, squashed, output = (projected.new_empty(count, size) for _ in range(3))
        for first, end, before, carried in steps:
            here = gates[first:end]
            if carried:
                previous = output[before : before + carried]
                state = states[first : first + carried]
                torch.mul(previous, mask[:carried], out=state) if mask is not None else state.copy_(previous)
                here[:carried, : 5 * size] += product(state, scratch[:carried])
            here[:, : 2 * size].sigmoid_()
            here[:, 3 * size : 5 * size].sigmoid_()
            i, f, g, o, r, u = here.split(size, dim=1)
            _tanh_(g)
            memory = torch.mul(i, g, out=memories[first:end])
            if carried:
                memory[:carried].addcmul_(f[:carried], memories[before : before + carried])
            tanh = _tanh_(squashed[first:end].copy_(memory))
            torch.lerp(u, o * tanh, r, out=output[first:end])
        ctx.save_for_backward(gates, states, memories, squashed, weight, mask)
        ctx.steps = steps
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gates, states, memories, squashed, weight, mask = ctx.saved_tensors
        size = weight.shape[1]
        result = torch.empty_like(gates)  # [N, 6H]: the gradients of what the gates are squashed from, and of u
        product = prepare_input_gradient(weight)
        carried_state = carried_memory = gradient.new_empty(0, size)  # from the step that was read after this one
        for first, end, before, carried in reversed(ctx.steps):
            i, f, g, o, r, u = gates[first:end].split(size, dim=1)
            di, df, dg, do, dr, du = result[first:end].split(size, dim=1)
            tanh = squashed[first:end]
            dh = gradient[first:end].clone()
            dh[: len(carried_state)] += carried_state
            _sigmoid_backward(dh * (o * tanh - u), r, grad_input=dr)
            dy = dh * r
            torch.sub(dh, dy, out=du)
            _sigmoid_backward(dy * tanh, o, grad_input=do)
            dc = _tanh_backward(dy.mul_(o), tanh, grad_input=dy)
            dc[: len(carried_memory)] += carried_memory
            _sigmoid_backward(dc * g, i, grad_input=di)
            _tanh_backward(dc * i, g, grad_input=dg)
            df[carried:] = 0
            if not carried:  # the first step that was read
                break
            _sigmoid_backward(dc[:carried] * memories[before : before + carried], f[:carried], grad_input=df[:carried])
            carried_memory = dc[:carried] * f[:carried]
            of_gates = result[first : first + carried, : 5 * size]
            carried_state = product(of_gates, gradient.new_empty(carried, size))
            if mask is not None:
                carried_state *= mask[:carried]
        # with u, which the states have no share in, as oneDNN is slow for a part of each row
        of_weight = weight_gradient_matmul(result, states)[: 5 * size]
        return result, of_weight, result.sum(dim=0)[: 5 * size], None, None, None


def _steps(sizes: Sequence[int], backwards: bool) -> list[tuple[int, int, int, int]]:
    """For each step in the order of reading: its rows (first, end), where the rows of the step before it begin, and for
    how many of its rows there was one."""
    ends = list(accumulate(sizes))
    places = [(end - size, end, size) for end, size in zip(ends, sizes, strict=True)]
    steps = []
    before, size_before = 0, 0
    for first, end, size in reversed(places) if backwards else places:
        steps.append((first, end, before, min(size, size_before)))
        before, size_before = first, size
    return steps


def _tanh_(x: Tensor) -> Tensor:
    """tanh in place, as 2σ(2x) − 1: on CPUs the sigmoid is vectorised, tanh is not, and takes ten times as long."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)
