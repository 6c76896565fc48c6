"""Alternating highway LSTM: the encoder of He et al. (2017), each layer one function
with a derivative of its own.

Layers read forwards and backwards in turn, a learned gate mixes the output of each step
with a projection of the step's input, and the recurrent states have one dropout mask a
sentence and layer (Gal and Ghahramani 2016). Parameters and numbers are as of
`allennlp_light`'s `StackedAlternatingLstm`, which leaves each small step of each layer
to autograd and is slower for it.

Packed [N, …] means time-major: the words at place 0 of all sentences, longest sentence
first, then those at place 1 of the sentences that have one, …; `sizes` are the numbers
of words at each place.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from allennlp_light.modules.augmented_lstm import AugmentedLSTMCell
from allennlp_light.nn.util import get_dropout_mask
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmoc.kernels.matmul import (
    prepare_input_gradient,
    prepare_linear,
    weight_gradient_matmul,
)

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class AlternatingLstm(torch.nn.Module):
    """Highway LSTM layers of alternating direction, the first one forwards.

    dropout  on the recurrent states, one mask for each sentence and layer
    """

    def __init__(
        self, *, input_size: int, hidden_size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.cells = torch.nn.ModuleList(
            AugmentedLSTMCell(hidden_size if layer else input_size, hidden_size)
            for layer in range(layers)
        )
        self.output_size = hidden_size
        self.dropout = dropout

    @property
    def first(self) -> torch.nn.Linear:
        """The linear layer that the caller applies to the inputs: inputs that are
        repeated are multiplied once.
        """
        cell = self.cells[0]
        assert isinstance(cell, AugmentedLSTMCell)
        return cell.input_linearity

    def forward(self, projected: Tensor, sizes: Sequence[int]) -> Tensor:
        """The output of `first`, [N, 6H], packed → [N, H]."""
        states = projected
        for layer, cell in enumerate(self.cells):
            assert isinstance(cell, AugmentedLSTMCell)
            if layer:
                projected = linear(
                    states, cell.input_linearity.weight, cell.input_linearity.bias
                )
            mask = None
            if self.training and self.dropout:
                mask = get_dropout_mask(
                    self.dropout, projected.new_empty(sizes[0], self.output_size)
                )  # [B, H]
            recurrent = cell.state_linearity
            states = _HighwayLayer.apply(
                projected, recurrent.weight, recurrent.bias, mask, sizes, layer % 2 == 1
            )
        return states


class _HighwayLayer(torch.autograd.Function):
    """One layer over a packed batch.

    projected  [N, 6H]: the inputs' part of the pre-activations i, f, g, o and r (input
               gate, forget gate, cell candidate, output gate, highway gate), and u,
               which the highway gate passes in place of the output
    weight     [5H, H] and bias [5H]: the previous state's part of them
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
        count = projected.shape[0]
        size = weight.shape[1]
        steps = _steps(sizes, backwards)
        gates = projected.clone()  # [N, 6H]
        gates[:, : 5 * size] += bias
        product = prepare_linear(weight)
        scratch = projected.new_empty(max(sizes), 5 * size)
        states = projected.new_zeros(count, size)  # masked states of the steps before
        cells, cell_tanh, output = (projected.new_empty(count, size) for _ in range(3))
        for first, end, before, carried in steps:
            here = gates[first:end]
            if carried:
                previous = output[before : before + carried]
                state = states[first : first + carried]
                torch.mul(
                    previous, mask[:carried], out=state
                ) if mask is not None else state.copy_(previous)
                here[:carried, : 5 * size] += product(state, scratch[:carried])
            here[:, : 2 * size].sigmoid_()
            here[:, 3 * size : 5 * size].sigmoid_()
            i, f, g, o, r, u = here.split(size, dim=1)
            _tanh_(g)
            cell = torch.mul(i, g, out=cells[first:end])
            if carried:
                cell[:carried].addcmul_(f[:carried], cells[before : before + carried])
            tanh = _tanh_(cell_tanh[first:end].copy_(cell))
            torch.lerp(u, o * tanh, r, out=output[first:end])
        ctx.save_for_backward(gates, states, cells, cell_tanh, weight, mask)
        ctx.steps = steps
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gates, states, cells, cell_tanh, weight, mask = ctx.saved_tensors
        size = weight.shape[1]
        result = torch.empty_like(
            gates
        )  # [N, 6H]: the gradients of the pre-activations and of u
        product = prepare_input_gradient(weight)
        carried_state = carried_cell = gradient.new_empty(
            0, size
        )  # from the step that was read after this one
        for first, end, before, carried in reversed(ctx.steps):
            i, f, g, o, r, u = gates[first:end].split(size, dim=1)
            di, df, dg, do, dr, du = result[first:end].split(size, dim=1)
            tanh = cell_tanh[first:end]
            dh = gradient[first:end].clone()
            dh[: len(carried_state)] += carried_state
            _sigmoid_backward(dh * (o * tanh - u), r, grad_input=dr)
            dy = dh * r
            torch.sub(dh, dy, out=du)
            _sigmoid_backward(dy * tanh, o, grad_input=do)
            dc = _tanh_backward(dy.mul_(o), tanh, grad_input=dy)
            dc[: len(carried_cell)] += carried_cell
            _sigmoid_backward(dc * g, i, grad_input=di)
            _tanh_backward(dc * i, g, grad_input=dg)
            df[carried:] = 0
            if not carried:  # the first step that was read
                break
            _sigmoid_backward(
                dc[:carried] * cells[before : before + carried],
                f[:carried],
                grad_input=df[:carried],
            )
            carried_cell = dc[:carried] * f[:carried]
            of_gates = result[first : first + carried, : 5 * size]
            carried_state = product(of_gates, gradient.new_empty(carried, size))
            if mask is not None:
                carried_state *= mask[:carried]
        # u, which the states do not enter, is multiplied too and dropped: oneDNN is
        # slow for a part of each row
        of_weight = weight_gradient_matmul(result, states)[: 5 * size]
        return result, of_weight, result.sum(dim=0)[: 5 * size], None, None, None


def _steps(sizes: Sequence[int], backwards: bool) -> list[tuple[int, int, int, int]]:
    """For each step in the order of reading: its rows (first, end), the first row of
    the previous step, and how many of its rows have a previous step.
    """
    ends = list(accumulate(sizes))
    places = [(end - size, end, size) for end, size in zip(ends, sizes, strict=True)]
    steps = []
    before = 0
    size_before = 0
    for first, end, size in reversed(places) if backwards else places:
        steps.append((first, end, before, min(size, size_before)))
        before = first
        size_before = size
    return steps


def _tanh_(x: Tensor) -> Tensor:
    """tanh in place, as 2σ(2x) − 1: on CPUs PyTorch's sigmoid is vectorised, its tanh
    takes ten times as long.
    """
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x [n, D], weight [M, D], bias [M] → x Wᵀ + b, [n, M]."""
    result: Tensor = _Linear.apply(x, weight, bias)
    return result


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return prepare_linear(weight)(x, x.new_empty(len(x), len(weight))).add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_x = (
            prepare_input_gradient(weight)(gradient, torch.empty_like(x))
            if ctx.needs_input_grad[0]
            else None
        )
        return of_x, weight_gradient_matmul(gradient, x), gradient.sum(dim=0)
