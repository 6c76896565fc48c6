"""The fused recurrence: `plain_recurrence` differentiated by hand, as fast as its
matrix multiplications allow.

Forward, each step is one multiplication of [a_t; h_{t-1}] by [W_x W_h], one pass over
the gates, one multiplication by W_p and one pass over h. Backward mirrors it; the
gradients of the gates take the gates' place, and the gradient of each weight is a
single multiplication over all steps at once.

Letters: B streams or batch, T time, P projection, C cell, I the width of a layer's
input. Under autocast activations and multiplications are in its type S (bfloat16), the
cell state, layer normalisation and the gradients of weights in A (float32); without it
both are the type of the weights.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
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

    Made anew for every window: a fused optimiser changes weights without raising
    `Tensor._version`.
    """

    def __init__(self, weights: RecurrenceWeights, dtype: torch.dtype) -> None:
        width = weights.input.shape[1]
        self.dtype = dtype
        with torch.no_grad():
            self._step = weights.hidden.new_empty(
                (len(weights.hidden), width + weights.hidden.shape[1]), dtype=dtype
            )
            self._step[:, :width].copy_(weights.input)
            self._step[:, width:].copy_(weights.hidden)
            self._projection = weights.projection.detach().to(dtype)
        self.step = prepare_linear(self._step)  # [B, I + P] → [B, 4C]
        self.projection = prepare_linear(self._projection)  # [B, C] → [B, P]

    @cached_property
    def backward(self) -> tuple[Matmul, Matmul]:
        """For the gradients of step and projection: [B, 4C] → [B, I + P], and [B, P] →
        [B, C].
        """
        return prepare_input_gradient(self._step), prepare_input_gradient(
            self._projection
        )


@dataclass
class LayerRun:
    """What a layer is run over a window with, besides its tensors."""

    layer: LayerConstants
    kernels: StepKernels
    prepared: PreparedWeights
    keep: bool  # whether activations are kept for the backward pass


class Activations(NamedTuple):
    """What the forward pass leaves to the backward pass; of one step alone where there
    will be none.
    """

    joined: Tensor  # S [T + 1, B, I + P]: [a_t; h_{t-1}]
    gates: Tensor  # S [T, B, 4C]: after σ and tanh
    cells: Tensor  # A [T + 1, B, C]: c_{t-1}
    projected: Tensor  # S [T, B, P]: before the clip
    moments: Tensor  # A [T, B, 2]: mean and 1/deviation of the layer normalisation


class Gradients(NamedTuple):
    """What the backward pass reads and updates from the last step to the first."""

    outputs: Tensor  # A [T, B, P]
    hidden: Tensor  # A [B, P]: what reaches h_t from the steps after it
    cell: Tensor  # A [B, C]: what reaches c_t from the steps after it
    norm: Tensor  # A [parts, 2, P]: of weight and bias of the layer normalisation
    bias: Tensor  # A [parts, 4C]
    joined: Tensor  # S [T, B, I + P]
    projected: Tensor  # S [T, B, P]
    gated_cell: Tensor  # S [B, C]: of one step alone
    # S [T, B, C]: not a gradient, but σ(o)·tanh(c_t) made again, for the gradient of
    # W_p
    gated_cells: Tensor


@lru_cache
def choose_kernels(
    device: str, stored: torch.dtype, accumulated: torch.dtype
) -> StepKernels | str:
    """The kernels for a kind of device ("cpu", "cuda") and the types S and A; where
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

            driver.active.utils  # noqa: B018 (compiled here, where it never was, by a C compiler with Python's headers)
        except (
            Exception
        ) as error:  # it is not installed; what else it may raise is not documented
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

    The default `kernels` are those for device and types.
    """
    mask = options.dropout_mask
    lengths = options.lengths
    device = inputs.device.type
    dtype = (
        torch.get_autocast_dtype(device)
        if torch.is_autocast_enabled(device)
        else weights.hidden.dtype
    )
    kernels = kernels or choose_kernels(device, dtype, weights.bias.dtype)
    if isinstance(kernels, str):
        return plain_recurrence(inputs, state, weights, options)
    run = LayerRun(
        layer=LayerConstants(
            bias=weights.bias.detach(),
            norm_weight=None
            if weights.norm_weight is None
            else weights.norm_weight.detach(),
            norm_bias=None if weights.norm_bias is None else weights.norm_bias.detach(),
            mask=None if mask is None else mask.to(weights.bias.dtype).contiguous(),
            lengths=None
            if lengths is None
            else lengths.to(inputs.device, torch.int64).contiguous(),
            cell_clip=options.cell_clip,
            projection_clip=options.projection_clip,
            norm_epsilon=options.norm_epsilon,
        ),
        kernels=kernels,
        prepared=PreparedWeights(weights, dtype),
        keep=torch.is_grad_enabled()
        and any(
            tensor is not None and tensor.requires_grad
            for tensor in (inputs, *state, *weights)
        ),
    )
    # Triton launches its kernels on the current GPU; autograd's thread, which runs the
    # backward pass, has that set
    with torch.autocast(device, enabled=False), torch.cuda.device_of(inputs):
        outputs, hidden, cell = _FusedLayer.apply(run, inputs, *state, *weights)
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
        activations = start_forward(run, inputs, hidden, cell)
        joined, gates, cells, projected, moments = activations
        gated_cell = torch.empty(cell.shape, dtype=prepared.dtype, device=inputs.device)
        outputs = torch.empty(
            time, *hidden.shape, dtype=layer.bias.dtype, device=inputs.device
        )
        for step in range(time):
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
        last = (
            joined[time, :, width:].to(layer.bias.dtype, copy=True),
            cells[time % len(cells)].clone(),
        )
        if run.keep:
            # the weights are saved so that changing one before the backward pass is an
            # error
            ctx.save_for_backward(*activations, *weights)
            ctx.run = run
            ctx.types = (inputs.dtype, hidden.dtype, cell.dtype)
            ctx.set_materialize_grads(False)
        return outputs.transpose(0, 1), *last

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
        activations = Activations(*ctx.saved_tensors[: len(Activations._fields)])
        layer = run.layer
        accumulated = run.layer.bias.dtype
        time = len(activations.gates)
        width = activations.joined.shape[2] - activations.projected.shape[2]
        grads = start_backward(run, activations, grad_outputs, grad_hidden, grad_cell)
        for step in reversed(range(time)):
            step_backward(run, step, activations, grads)
        before = grads.joined[0, :, width:].to(accumulated)
        if layer.lengths is not None:
            before = torch.where((layer.lengths > 0).unsqueeze(1), before, grads.hidden)
        # the gradients of the gates have taken the gates' place
        of_step = weight_gradient_matmul(
            activations.gates.flatten(0, 1), activations.joined[:time].flatten(0, 1)
        )  # [4C, I + P]
        of_projection = weight_gradient_matmul(
            grads.projected.flatten(0, 1), grads.gated_cells.flatten(0, 1)
        )  # [P, C]
        of_inputs = grads.joined[:, :, :width].to(ctx.types[0]).transpose(0, 1)
        for tensor in activations:
            increment_version(
                tensor
            )  # a second backward pass would find other values in these
        return (
            None,
            of_inputs,
            before.to(ctx.types[1]),
            grads.cell.to(ctx.types[2]),
            contiguous_copy(of_step[:, :width], accumulated),
            contiguous_copy(of_step[:, width:], accumulated),
            grads.bias.sum(0),
            contiguous_copy(of_projection, accumulated),
            *(
                (None, None)
                if layer.norm_weight is None
                else grads.norm.sum(0).unbind()
            ),
        )


def start_forward(
    run: LayerRun, inputs: Tensor, hidden: Tensor, cell: Tensor
) -> Activations:
    """Memory for the activations of a window, with its inputs and the state before its
    first step.
    """
    (batch, time, width), (projection, size) = (
        inputs.shape,
        (hidden.shape[1], cell.shape[1]),
    )
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
    run: LayerRun, activations: Activations, *given: Tensor | None
) -> Gradients:
    """The gradients before the last step is run backward; `given` are the gradients of
    `forward`'s results.
    """
    time, batch, width = activations.gates.shape
    projection = activations.projected.shape[2]
    accumulated = run.layer.bias.dtype
    cell_shape = activations.cells.shape[1:]
    device = activations.joined.device
    norm_parts, bias_parts = run.kernels.parts(batch)
    outputs, hidden, cell = given

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=accumulated, device=device)

    def own(tensor: Tensor) -> Tensor:
        return tensor.to(accumulated, copy=True, memory_format=torch.contiguous_format)

    return Gradients(
        zeros(time, batch, projection)
        if outputs is None
        else outputs.transpose(0, 1).to(accumulated).contiguous(),
        zeros(batch, projection) if hidden is None else own(hidden),
        zeros(*cell_shape) if cell is None else own(cell),
        zeros(norm_parts, 2, projection),
        zeros(bias_parts, width),
        torch.empty_like(activations.joined[:time]),
        torch.empty_like(activations.projected),
        torch.empty(cell_shape, dtype=activations.joined.dtype, device=device),
        torch.empty((time, *cell_shape), dtype=activations.joined.dtype, device=device),
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
    step_matmul, projection_matmul = run.prepared.backward
    grad = projection_matmul(grads.projected[step], grads.gated_cell)
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
    matmul_into(grads.joined[step], step_matmul, gates)


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
