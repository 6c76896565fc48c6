"""How does a layer step through time as fast as its matrix products allow?

The same function as `plain_recurrence`, differentiated by hand. Forward, each step is one product [a_t; h_{t-1}] by
[W_x W_h], one pass over the gates, one product by W_p and one pass over h. Backward mirrors it; the gradients of the
gates take the gates' place, and those of all weights are single products over all steps at once.

Letters as in the project, and I: the width of a layer's input. Under autocast activations and products are in its type
(bfloat16), the cell state, layer normalisation and the gradients of weights in float32.
"""

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version

from elmoc.encoders.recurrence import LSTMState, RecurrenceWeights
from elmoc.kernels.choose import choose_kernels
from elmoc.kernels.lstm_step import LayerConstants, StepKernels
from elmoc.kernels.matmul import Product, product_with, product_with_transpose, transposed_product


class Workspace:
    """Memory for activations that is used again in the next window: on the CPU fresh memory costs as much as a product.

    Several layers may share one, in several threads. On a GPU PyTorch's own allocator does this.
    """

    def __init__(self) -> None:
        self._free: dict[str, list[torch.UntypedStorage]] = defaultdict(list)

    def take(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor with arbitrary contents."""
        numel = math.prod(shape)
        if device.type == "cpu":
            with suppress(IndexError):
                whole = torch.empty(0, dtype=dtype).set_(self._free[name].pop())
                if len(whole) >= numel:
                    return whole[:numel].view(shape)
        return torch.empty(shape, dtype=dtype, device=device)

    def give(self, **tensors: Tensor) -> None:
        """Give back what was taken, under the same names; nothing may read it any more."""
        for name, tensor in tensors.items():
            if tensor.device.type == "cpu":
                self._free[name].append(tensor.untyped_storage())


class PreparedWeights:
    """A layer's weights in the type of the activations and in the order that the products like best.

    Made anew for every window: a fused optimiser changes weights without a trace (`Tensor._version` stays as it was).
    """

    def __init__(self, weights: RecurrenceWeights, dtype: torch.dtype) -> None:
        width = weights.input.shape[1]
        self.dtype = dtype
        with torch.no_grad():
            self._step = weights.hidden.new_empty((len(weights.hidden), width + weights.hidden.shape[1]), dtype=dtype)
            self._step[:, :width].copy_(weights.input)
            self._step[:, width:].copy_(weights.hidden)
            self._projection = weights.projection.detach().to(dtype)

    @cached_property
    def step(self) -> Product:
        """[B, I + P] → [B, 4C]"""
        return product_with(self._step)

    @cached_property
    def projection(self) -> Product:
        """[B, C] → [B, P]"""
        return product_with(self._projection)

    @cached_property
    def step_backward(self) -> Product:
        """[B, 4C] → [B, I + P]"""
        return product_with_transpose(self._step)

    @cached_property
    def projection_backward(self) -> Product:
        """[B, P] → [B, C]"""
        return product_with_transpose(self._projection)


@dataclass
class Window:
    """What a window is run with, besides its tensors."""

    layer: LayerConstants
    kernels: StepKernels
    prepared: PreparedWeights
    workspace: Workspace
    keep: bool
    """Whether activations are kept for the backward pass."""


class FusedRecurrence:
    """A `Recurrence`, equal to `plain_recurrence` up to rounding.

    Args:
        workspace: shared by the layers that take turns, where memory counts; else each layer has its own.
        kernels: the pointwise kernels; by default the fastest there are for device and type.
    """

    def __init__(self, workspace: Workspace | None = None, kernels: StepKernels | None = None) -> None:
        self._workspace = workspace or Workspace()
        self._kernels = kernels

    def __call__(
        self,
        inputs: Tensor,
        state: LSTMState,
        weights: RecurrenceWeights,
        *,
        cell_clip: float,
        projection_clip: float,
        norm_epsilon: float,
        dropout_mask: Tensor | None,
        lengths: Tensor | None,
    ) -> tuple[Tensor, LSTMState]:
        """See `plain_recurrence`."""
        device = inputs.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weights.hidden.dtype
        window = Window(
            layer=LayerConstants(
                bias=weights.bias.detach(),
                norm_weight=None if weights.norm_weight is None else weights.norm_weight.detach(),
                norm_bias=None if weights.norm_bias is None else weights.norm_bias.detach(),
                mask=None if dropout_mask is None else dropout_mask.to(weights.bias.dtype).contiguous(),
                lengths=None if lengths is None else lengths.to(inputs.device, torch.int64).contiguous(),
                cell_clip=cell_clip,
                projection_clip=projection_clip,
                norm_epsilon=norm_epsilon,
            ),
            kernels=self._kernels or choose_kernels(device, dtype, weights.bias.dtype),
            prepared=PreparedWeights(weights, dtype),
            workspace=self._workspace,
            keep=torch.is_grad_enabled()
            and any(tensor is not None and tensor.requires_grad for tensor in (inputs, *state, *weights)),
        )
        with torch.autocast(device, enabled=False):
            outputs, hidden, cell = _FusedWindow.apply(window, inputs, *state, *weights)
        return outputs, LSTMState(hidden, cell)


class _FusedWindow(torch.autograd.Function):
    """One layer over one window."""

    @staticmethod
    def forward(
        ctx: Any, window: Window, inputs: Tensor, hidden: Tensor, cell: Tensor, *weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """inputs [B, T, I], state [B, P] and [B, C], `RecurrenceWeights` → outputs [B, T, P], hidden, cell."""
        layer, kernels, prepared = window.layer, window.kernels, window.prepared
        (batch, time, width), size = inputs.shape, cell.shape[1]
        accumulated, stored, projection = layer.bias.dtype, prepared.dtype, hidden.shape[1]
        steps = time if window.keep else 1

        def take(name: str, *shape: int, dtype: torch.dtype = stored) -> Tensor:
            return window.workspace.take(name, shape, dtype, inputs.device)

        joined = take("joined", time + 1, batch, width + projection)  # [a_t; h_{t-1}]
        gates = take("gates", steps, batch, 4 * size)
        cells = take("cells", steps + 1, batch, size, dtype=accumulated)  # c_{t-1}
        memory = take("memory", batch, size)  # σ(o)·tanh(c_t), which the backward pass makes again
        projected = take("projected", steps, batch, projection)  # before the clip
        moments = take("moments", steps, batch, 2, dtype=accumulated)
        outputs = torch.empty(time, batch, projection, dtype=accumulated, device=inputs.device)
        joined[:time, :, :width].copy_(inputs.transpose(0, 1))
        joined[0, :, width:].copy_(hidden)
        cells[0].copy_(cell)
        for step in range(time):
            kept = step % steps
            now, after = step % len(cells), (step + 1) % len(cells)
            raw = prepared.step(joined[step], gates[kept])
            kernels.gates_forward(layer, step, raw, cells[now], gates[kept], cells[after], memory)
            multiply_into(projected[kept], prepared.projection, memory)
            before, hidden_after = joined[step, :, width:], joined[step + 1, :, width:]
            kernels.output_forward(layer, step, projected[kept], before, hidden_after, moments[kept], outputs[step])
        window.workspace.give(memory=memory)
        last = final_outputs(outputs, hidden, layer.lengths), cells[time % len(cells)].clone()
        if window.keep:
            # the weights are saved so that changing one before the backward pass is an error
            ctx.save_for_backward(joined, gates, cells, projected, moments, *weights)
            ctx.window, ctx.width, ctx.types = window, width, (inputs.dtype, hidden.dtype, cell.dtype)
            ctx.set_materialize_grads(False)
        else:
            window.workspace.give(joined=joined, gates=gates, cells=cells, projected=projected, moments=moments)
        return outputs.transpose(0, 1), *last

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_outputs: Tensor | None, grad_hidden: Tensor | None, grad_cell: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Gradients of everything `forward` was given."""
        joined, gates, cells, projected, moments, *_ = ctx.saved_tensors
        window, width = ctx.window, ctx.width
        layer, kernels, prepared = window.layer, window.kernels, window.prepared
        time, batch, projection = projected.shape
        accumulated, device = layer.bias.dtype, joined.device
        norm_parts, bias_parts = kernels.parts(batch)

        def gradient(given: Tensor | None, *shape: int) -> Tensor:
            if given is None:
                return torch.zeros(shape, dtype=accumulated, device=device)
            return given.to(accumulated, copy=True, memory_format=torch.contiguous_format)

        grad_cell = gradient(grad_cell, *cells.shape[1:])
        grad_hidden = gradient(grad_hidden, batch, projection)
        if grad_outputs is None:
            grad_outputs = torch.zeros(time, batch, projection, dtype=accumulated, device=device)
        else:
            grad_outputs = grad_outputs.transpose(0, 1).to(accumulated).contiguous()
        grad_norm = torch.zeros(norm_parts, 2, projection, dtype=accumulated, device=device)
        grad_bias = torch.zeros(bias_parts, gates.shape[2], dtype=accumulated, device=device)
        grad_joined = torch.empty_like(joined[:time])
        grad_projected = torch.empty_like(projected)
        size = cells.shape[2]
        memory = window.workspace.take("all memory", (time, batch, size), joined.dtype, device)  # σ(o)·tanh(c_t)
        grad_memory = torch.empty_like(memory[0])
        for step in reversed(range(time)):
            grad_next = grad_joined[step + 1, :, width:] if step + 1 < time else None
            kernels.output_backward(
                layer,
                step,
                grad_outputs[step],
                grad_hidden,
                grad_next,
                projected[step],
                moments[step],
                grad_projected[step],
                grad_norm,
            )
            grad_raw = prepared.projection_backward(grad_projected[step], grad_memory)
            kernels.gates_backward(
                layer,
                step,
                grad_raw,
                cells[step + 1],
                cells[step],
                gates[step],
                memory[step],
                grad_cell,
                grad_bias,
            )
            multiply_into(grad_joined[step], prepared.step_backward, gates[step])
        before = grad_joined[0, :, width:].to(accumulated)
        if layer.lengths is not None:
            before = torch.where((layer.lengths > 0).unsqueeze(1), before, grad_hidden)
        grad_weights = transposed_product(gates.flatten(0, 1), joined[:time].flatten(0, 1))  # [4C, I + P]
        grad_projection = transposed_product(grad_projected.flatten(0, 1), memory.flatten(0, 1))  # [P, C]
        grad_inputs = grad_joined[:, :, :width].to(ctx.types[0]).transpose(0, 1)
        # a second backward pass would find other values in these
        used = {"joined": joined, "gates": gates, "cells": cells, "projected": projected, "moments": moments}
        for tensor in used.values():
            increment_version(tensor)
        window.workspace.give(**used, **{"all memory": memory})
        norm = (None, None) if layer.norm_weight is None else grad_norm.sum(0).unbind()
        return (
            None,
            grad_inputs,
            before.to(ctx.types[1]),
            grad_cell.to(ctx.types[2]),
            copied(grad_weights[:, :width], accumulated),
            copied(grad_weights[:, width:], accumulated),
            grad_bias.sum(0),
            copied(grad_projection, accumulated),
            *norm,
        )


def multiply_into(place: Tensor, product: Product, x: Tensor) -> None:
    """Put a product where it is wanted, whether or not the library can write there."""
    result = product(x, place)
    if result is not place:
        place.copy_(result)


def copied(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The same in rows after each other: `Tensor.to` takes three times as long for a part of each row."""
    return torch.empty(tensor.shape, dtype=dtype, device=tensor.device).copy_(tensor)


def final_outputs(outputs: Tensor, hidden: Tensor, lengths: Tensor | None) -> Tensor:
    """The hidden state [B, P] after the last step of every stream, from outputs [T, B, P] and that before the first."""
    time, batch = outputs.shape[:2]
    if lengths is None:
        return outputs[-1].clone()
    last = lengths.clamp(max=time) - 1
    final = outputs[last.clamp(min=0), torch.arange(batch, device=outputs.device)]
    return torch.where((last >= 0).unsqueeze(1), final, hidden.to(outputs.dtype))
