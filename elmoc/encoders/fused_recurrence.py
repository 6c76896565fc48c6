"""The fused recurrence: `plain_recurrence` differentiated by hand, as fast as its
matrix multiplications allow.

Forward, each step is one multiplication of [a_t; h_{t-1}] by [W_x W_h], one pass over
the gates, one multiplication by W_p and one pass over h. Backward mirrors it; the
gradients of the gates take the gates' place, and the gradient of each weight is a
single multiplication over all steps at once.

Letters: B streams or batch, T time, P projection, C cell, I the width of a layer's
input. S is the type of activations and of the factors of products, A that of the cell
state, of layer normalisation and of the gradients of weights. Under autocast S is its
type (bfloat16) and A float32; without it both are the type of the weights.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version

from elmoc.encoders.recurrence import (
    LSTMState,
    RecurrenceOptions,
    RecurrenceWeights,
    plain_recurrence,
)
from elmoc.errors import reason
from elmoc.kernels.compiling import KernelBuildError
from elmoc.kernels.cpu import CompiledKernels
from elmoc.kernels.lstm_step import (
    GatesBackward,
    GatesForward,
    LayerConstants,
    OutputBackward,
    OutputForward,
    StepKernels,
)
from elmoc.kernels.matmul import (
    Matmul,
    prepare_input_gradient,
    prepare_linear,
    weight_gradient_matmul,
)


class PreparedWeights:
    """A layer's weights in the type of the activations and in the order in which they
    are multiplied fastest.
    """

    def __init__(self, weights: RecurrenceWeights, dtype: torch.dtype) -> None:
        width = weights.input.shape[1]
        shape = (len(weights.hidden), width + weights.hidden.shape[1])
        self.dtype = dtype
        with torch.no_grad():
            # [W_x W_h], filled in place: `torch.cat` would copy it once more
            self._step = weights.hidden.new_empty(shape, dtype=dtype)
            self._step[:, :width].copy_(weights.input)
            self._step[:, width:].copy_(weights.hidden)
            self._projection = weights.projection.detach().to(dtype)
        # [B, I + P] → [B, 4C], and [B, C] → [B, P]
        self.step = prepare_linear(self._step)
        self.projection = prepare_linear(self._projection)

    @cached_property
    def step_gradient(self) -> Matmul:
        """[B, 4C] → [B, I + P]."""
        return prepare_input_gradient(self._step)

    @cached_property
    def projection_gradient(self) -> Matmul:
        """[B, P] → [B, C]."""
        return prepare_input_gradient(self._projection)


@dataclass
class LayerRun:
    """A layer's run over a window, besides its tensors.

    layer: what is the same at all steps.
    kernels: what runs between the products.
    prepared: the weights.
    keep: whether activations are kept for the backward pass.
    """

    layer: LayerConstants
    kernels: StepKernels
    prepared: PreparedWeights
    keep: bool


class Activations(NamedTuple):
    """What the forward pass leaves to the backward pass; where there will be none, it
    holds one step alone.
    """

    # S [T + 1, B, I + P]: [a_t; h_{t-1}]
    joined: Tensor
    # S [T, B, 4C]: after σ and tanh
    gates: Tensor
    # A [T + 1, B, C]: c_{t-1}
    cells: Tensor
    # S [T, B, P]: before the clip
    projected: Tensor
    # A [T, B, 2]: mean and 1/deviation of the layer normalisation
    moments: Tensor


class Gradients(NamedTuple):
    """What the backward pass reads and updates from the last step to the first."""

    # A [T, B, P]
    outputs: Tensor
    # A [B, P]: what reaches h_t from the steps after it
    hidden: Tensor
    # A [B, C]: what reaches c_t from the steps after it
    cell: Tensor
    # A [parts, 2, P]: of weight and bias of the layer normalisation
    norm: Tensor
    # A [parts, 4C]
    bias: Tensor
    # S [T, B, I + P]
    joined: Tensor
    # S [T, B, P]
    projected: Tensor
    # S [B, C]: of one step alone
    gated_cell: Tensor
    # S [T, B, C]: σ(o)·tanh(c_t) made again, for the gradient of W_p
    gated_cells: Tensor


@lru_cache
def choose_kernels(
    device: str, stored: torch.dtype, accumulated: torch.dtype
) -> StepKernels | str:
    """The kernels for a kind of device (`cpu`, `cuda`) and the types S and A; where
    there are none, the reason.
    """
    if accumulated != torch.float32:
        return f"weights are in {accumulated}"
    if device == "cpu" and stored in (torch.float32, torch.bfloat16):
        try:
            return CompiledKernels(stored)
        except KernelBuildError as error:
            return str(error)
    if device == "cuda":
        try:
            from triton.runtime import driver

            # a C compiler with Python's headers compiles it at the first use
            driver.active.utils  # noqa: B018
        # Triton may not be installed, and does not document what else it raises
        except Exception as error:
            return f"Triton's driver cannot be had ({reason(error)})"
        from elmoc.kernels.gpu import TritonKernels

        return TritonKernels()
    return f"there are no kernels for {stored} on a {device}"


def fused_recurrence(
    inputs: Tensor,
    state: LSTMState,
    weights: RecurrenceWeights,
    options: RecurrenceOptions,
    *,
    kernels: StepKernels | str | None = None,
) -> tuple[Tensor, LSTMState]:
    """`plain_recurrence` up to rounding, which runs where there are no kernels.

    Args:
        inputs, state, weights, options: see `plain_recurrence`.
        kernels: by default those for the device and the types.
    """
    device = inputs.device.type
    accumulated = weights.bias.dtype
    dtype = weights.hidden.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    kernels = kernels or choose_kernels(device, dtype, accumulated)
    if isinstance(kernels, str):
        return plain_recurrence(inputs, state, weights, options)
    mask = options.dropout_mask
    if mask is not None:
        mask = mask.to(accumulated).contiguous()
    lengths = options.lengths
    if lengths is not None:
        lengths = lengths.to(inputs.device, torch.int64).contiguous()
    norm_weight = weights.norm_weight
    norm_bias = weights.norm_bias
    differentiated = [
        each is not None and each.requires_grad
        for each in chain([inputs], state, weights)
    ]
    run = LayerRun(
        layer=LayerConstants(
            bias=weights.bias.detach(),
            norm_weight=None if norm_weight is None else norm_weight.detach(),
            norm_bias=None if norm_bias is None else norm_bias.detach(),
            mask=mask,
            lengths=lengths,
            cell_clip=options.cell_clip,
            projection_clip=options.projection_clip,
            norm_epsilon=options.norm_epsilon,
        ),
        kernels=kernels,
        # made anew for every window: a fused optimiser changes weights without raising
        # `Tensor._version`
        prepared=PreparedWeights(weights, dtype),
        keep=torch.is_grad_enabled() and any(differentiated),
    )
    # Triton launches its kernels on the current GPU; autograd's thread, which runs the
    # backward pass, has that set
    with torch.autocast(device, enabled=False), torch.cuda.device_of(inputs):
        outputs, hidden, cell = _FusedLayer.apply(
            run, inputs, state.hidden, state.cell, *weights
        )
    return outputs, LSTMState(hidden, cell)


class _FusedLayer(torch.autograd.Function):
    """One layer over one window."""

    @staticmethod
    def forward(
        ctx: Any,
        run: LayerRun,
        inputs: Tensor,
        hidden: Tensor,
        cell: Tensor,
        *weights: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """inputs [B, T, I], state [B, P] and [B, C], `RecurrenceWeights` → outputs [B,
        T, P], hidden, cell.
        """
        layer = run.layer
        kernels = run.kernels
        prepared = run.prepared
        time, width = inputs.shape[1:]
        shape = (time, len(inputs), hidden.shape[1])
        activations = start_forward(run, inputs, hidden, cell)
        joined, gates, cells, projected, moments = activations
        gated_cell = torch.empty(cell.shape, dtype=prepared.dtype, device=inputs.device)
        outputs = torch.empty(shape, dtype=layer.bias.dtype, device=inputs.device)
        for step in range(time):
            # without a backward pass every step has the memory of the one before
            kept = step % len(gates)
            now = step % len(cells)
            after = (step + 1) % len(cells)
            preactivation = prepared.step(joined[step], gates[kept])
            kernels.gates_forward(
                layer,
                step,
                GatesForward(
                    preactivation, cells[now], gates[kept], cells[after], gated_cell
                ),
            )
            matmul_into(projected[kept], prepared.projection, gated_cell)
            before = joined[step, :, width:]
            hidden_after = joined[step + 1, :, width:]
            kernels.output_forward(
                layer,
                step,
                OutputForward(
                    projected[kept], before, hidden_after, moments[kept], outputs[step]
                ),
            )
        # copies: whoever carries the state would keep all the activations in memory
        last_hidden = joined[time, :, width:].to(layer.bias.dtype, copy=True)
        last_cell = cells[time % len(cells)].clone()
        if run.keep:
            # the weights are saved so that changing one before the backward pass is an
            # error
            ctx.save_for_backward(*activations, *weights)
            ctx.run = run
            ctx.types = (inputs.dtype, hidden.dtype, cell.dtype)
            ctx.set_materialize_grads(False)
        return outputs.transpose(0, 1), last_hidden, last_cell

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        grad_outputs: Tensor | None,
        grad_hidden: Tensor | None,
        grad_cell: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        """The gradients of all inputs of `forward`."""
        run = ctx.run
        saved = ctx.saved_tensors[: len(Activations._fields)]
        activations = Activations._make(saved)
        layer = run.layer
        accumulated = layer.bias.dtype
        time = len(activations.gates)
        width = activations.joined.shape[2] - activations.projected.shape[2]
        grads = start_backward(run, activations, grad_outputs, grad_hidden, grad_cell)
        for step in reversed(range(time)):
            step_backward(run, step, activations, grads)
        before = grads.joined[0, :, width:].to(accumulated)
        if layer.lengths is not None:
            before = torch.where((layer.lengths > 0).unsqueeze(1), before, grads.hidden)
        # the gradients of the gates have taken the gates' place; [4C, I + P]
        of_step = weight_gradient_matmul(
            activations.gates.flatten(0, 1), activations.joined[:time].flatten(0, 1)
        )
        # [P, C]
        of_projection = weight_gradient_matmul(
            grads.projected.flatten(0, 1), grads.gated_cells.flatten(0, 1)
        )
        of_inputs = grads.joined[:, :, :width].to(ctx.types[0]).transpose(0, 1)
        of_norm_weight = of_norm_bias = None
        if layer.norm_weight is not None:
            of_norm_weight, of_norm_bias = grads.norm.sum(0).unbind()
        for tensor in activations:
            # a second backward pass, which would find other values in it, is an error
            increment_version(tensor)
        return (
            None,
            of_inputs,
            before.to(ctx.types[1]),
            grads.cell.to(ctx.types[2]),
            contiguous_copy(of_step[:, :width], accumulated),
            contiguous_copy(of_step[:, width:], accumulated),
            grads.bias.sum(0),
            contiguous_copy(of_projection, accumulated),
            of_norm_weight,
            of_norm_bias,
        )


def start_forward(
    run: LayerRun, inputs: Tensor, hidden: Tensor, cell: Tensor
) -> Activations:
    """Memory for the activations of a window, with its inputs and the state before its
    first step.
    """
    batch, time, width = inputs.shape
    projection = hidden.shape[1]
    size = cell.shape[1]
    accumulated = run.layer.bias.dtype
    stored = run.prepared.dtype
    steps = time if run.keep else 1

    def empty(dtype: torch.dtype, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=inputs.device)

    activations = Activations(
        joined=empty(stored, time + 1, batch, width + projection),
        gates=empty(stored, steps, batch, 4 * size),
        cells=empty(accumulated, steps + 1, batch, size),
        projected=empty(stored, steps, batch, projection),
        moments=empty(accumulated, steps, batch, 2),
    )
    activations.joined[:time, :, :width].copy_(inputs.transpose(0, 1))
    activations.joined[0, :, width:].copy_(hidden)
    activations.cells[0].copy_(cell)
    return activations


def start_backward(
    run: LayerRun,
    activations: Activations,
    grad_outputs: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
) -> Gradients:
    """The gradients before the last step is run backward, from the gradients of the
    results of `forward`.
    """
    time, batch, width = activations.gates.shape
    projection = activations.projected.shape[2]
    size = activations.cells.shape[2]
    accumulated = run.layer.bias.dtype
    stored = activations.joined.dtype
    device = activations.joined.device
    norm_parts, bias_parts = run.kernels.parts(batch)

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=accumulated, device=device)

    if grad_outputs is None:
        outputs = zeros(time, batch, projection)
    else:
        outputs = grad_outputs.transpose(0, 1).to(accumulated).contiguous()
    # the steps write to these two, so they are copies
    hidden = zeros(batch, projection)
    if grad_hidden is not None:
        hidden.copy_(grad_hidden)
    cell = zeros(batch, size)
    if grad_cell is not None:
        cell.copy_(grad_cell)
    return Gradients(
        outputs=outputs,
        hidden=hidden,
        cell=cell,
        norm=zeros(norm_parts, 2, projection),
        bias=zeros(bias_parts, width),
        joined=torch.empty_like(activations.joined[:time]),
        projected=torch.empty_like(activations.projected),
        gated_cell=torch.empty(batch, size, dtype=stored, device=device),
        gated_cells=torch.empty(time, batch, size, dtype=stored, device=device),
    )


def step_backward(
    run: LayerRun, step: int, activations: Activations, grads: Gradients
) -> None:
    """One step of the backward pass; the gradients of the gates take the place of
    `activations.gates[step]`.
    """
    projected = activations.projected[step]
    cells = activations.cells
    gates = activations.gates[step]
    last = step + 1 == len(activations.gates)
    output = OutputBackward(
        grads.outputs[step],
        grads.hidden,
        None if last else grads.joined[step + 1, :, -projected.shape[1] :],
        projected,
        activations.moments[step],
        grads.projected[step],
        grads.norm,
    )
    run.kernels.output_backward(run.layer, step, output)
    grad = run.prepared.projection_gradient(grads.projected[step], grads.gated_cell)
    run.kernels.gates_backward(
        run.layer,
        step,
        GatesBackward(
            grad,
            cells[step + 1],
            cells[step],
            gates,
            grads.gated_cells[step],
            grads.cell,
            grads.bias,
        ),
    )
    matmul_into(grads.joined[step], run.prepared.step_gradient, gates)


def matmul_into(out: Tensor, matmul: Matmul, x: Tensor) -> None:
    """Put the result in `out`, whether or not the library can write there."""
    result = matmul(x, out)
    if result is not out:
        out.copy_(result)


def contiguous_copy(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor row by row in memory of its own: `Tensor.to` takes three times as long
    for a part of each row.
    """
    return torch.empty(tensor.shape, dtype=dtype, device=tensor.device).copy_(tensor)
