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

from functools import lru_cache, partial
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
from elmoc.kernels.cpu import CompiledKernels
from elmoc.kernels.loading import NoKernelsError
from elmoc.kernels.lstm_step import (
    GatesBackward,
    GatesForward,
    OutputBackward,
    OutputForward,
    StepKernels,
)
from elmoc.kernels.matmul import (
    Matmul,
    prepare_input_gradient,
    prepare_linear,
)


class Activations(NamedTuple):
    """What the forward pass leaves to the backward pass; where there will be none, one
    step, and all of `joined`.
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
    # A [B, P]: what reaches the last h from after the window
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
        except NoKernelsError as error:
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
        options = options._replace(dropout_mask=mask.to(accumulated).contiguous())
    # Triton launches its kernels on the current GPU; autograd's thread, which runs the
    # backward pass, has that set
    with torch.autocast(device, enabled=False), torch.cuda.device_of(inputs):
        outputs, *after = _FusedLayer.apply(
            kernels, options, dtype, torch.is_grad_enabled(), inputs, *state, *weights
        )
    return outputs, LSTMState(*after)


class _FusedLayer(torch.autograd.Function):
    """One layer over one window."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: StepKernels,
        options: RecurrenceOptions,
        dtype: torch.dtype,
        recorded: bool,
        inputs: Tensor,
        hidden: Tensor,
        cell: Tensor,
        *given: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """inputs [B, T, I], state [B, P] and [B, C], `RecurrenceWeights` → outputs [B,
        T, P], hidden, cell; factors are in `dtype`, S, and `recorded` says whether
        gradients may be wanted.
        """
        weights = RecurrenceWeights._make(given)
        batch, time, width = inputs.shape
        size = hidden.shape[1]
        # [W_x W_h]. Weights are prepared anew for every window: a fused optimiser
        # changes them without raising `Tensor._version`.
        both = inputs.new_empty(len(weights.hidden), width + size, dtype=dtype)
        torch.cat((weights.input, weights.hidden), dim=1, out=both)
        step_product = prepare_linear(both)
        projection = weights.projection.to(dtype)
        projection_product = prepare_linear(projection)
        # without a backward pass every step has the memory of the one before
        kept = recorded and any(ctx.needs_input_grad)
        activations = start_forward(weights, inputs, dtype, time if kept else 1)
        joined, gates, cells, projected, moments = activations
        joined[0, :, width:].copy_(hidden)
        cells[0].copy_(cell)
        gated_cell = cells.new_empty(cell.shape, dtype=dtype)
        outputs = cells.new_empty(time, batch, size)
        run = partial(kernels.run, weights, options)
        for step in range(time):
            own = step % len(gates)
            run(
                GatesForward(
                    step_product(joined[step], gates[own]),
                    cells[step % len(cells)],
                    gates[own],
                    cells[(step + 1) % len(cells)],
                    gated_cell,
                )
            )
            matmul_into(projected[own], projection_product, gated_cell)
            run(
                OutputForward(
                    projected[own],
                    outputs[step],
                    joined[step + 1, :, width:],
                    moments[own],
                )
            )
        if kept:
            # the weights are saved so that changing one before the backward pass is an
            # error
            ctx.save_for_backward(*activations, *weights)
            ctx.rest = (kernels, options, both, projection)
        # a copy: whoever carries the state would keep all the activations in memory
        last_hidden = joined[time, :, width:].to(cells.dtype, copy=True)
        return outputs.transpose(0, 1), last_hidden, cells[time % len(cells)].clone()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_outputs: Tensor, grad_hidden: Tensor, grad_cell: Tensor
    ) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs of `forward`; autograd brings each to the type of
        its input.
        """
        count = len(Activations._fields)
        # a checkpoint gives them once
        saved = ctx.saved_tensors
        activations = Activations._make(saved[:count])
        weights = RecurrenceWeights._make(saved[count:])
        kernels, options, both, projection = ctx.rest
        step_gradient = prepare_input_gradient(both)
        projection_gradient = prepare_input_gradient(projection)
        grad_gated_cell = projection.new_empty(grad_cell.shape)
        time, batch, size = activations.projected.shape
        zeros = activations.cells.new_zeros
        norm_parts, bias_parts = kernels.parts(batch)
        grads = Gradients(
            outputs=grad_outputs.transpose(0, 1).to(weights.bias.dtype).contiguous(),
            # the steps write to these two, so they are copies
            hidden=zeros(grad_hidden.shape).copy_(grad_hidden),
            cell=zeros(grad_cell.shape).copy_(grad_cell),
            norm=zeros(norm_parts, 2, size),
            bias=zeros(bias_parts, len(weights.bias)),
            joined=torch.empty_like(activations.joined[:time]),
            projected=torch.empty_like(activations.projected),
            gated_cells=projection.new_empty(time, *grad_cell.shape),
        )
        run = partial(kernels.run, weights, options)
        for step in reversed(range(time)):
            run(
                OutputBackward(
                    grads.outputs[step],
                    grads.hidden,
                    grads.joined[step + 1, :, -size:] if step + 1 < time else None,
                    activations.projected[step],
                    activations.moments[step],
                    grads.projected[step],
                    grads.norm,
                )
            )
            # the gradients of the gates take the gates' place
            gates = activations.gates[step]
            run(
                GatesBackward(
                    projection_gradient(grads.projected[step], grad_gated_cell),
                    activations.cells[step + 1],
                    activations.cells[step],
                    gates,
                    grads.gated_cells[step],
                    grads.cell,
                    grads.bias,
                )
            )
            matmul_into(grads.joined[step], step_gradient, gates)
        return (
            *[None] * 4,
            grads.joined[:, :, :-size].transpose(0, 1),
            grads.joined[0, :, -size:],
            grads.cell,
            *weight_gradients(kernels, weights, activations, grads),
        )


def start_forward(
    weights: RecurrenceWeights, inputs: Tensor, dtype: torch.dtype, steps: int
) -> Activations:
    """Memory for the activations of a window of which some steps are kept, with the
    window's inputs.
    """
    batch, time, width = inputs.shape
    size, cell = weights.projection.shape
    stored = inputs.new_empty(0, dtype=dtype).new_empty
    accumulated = weights.bias.new_empty
    joined = stored(time + 1, batch, width + size)
    joined[:time, :, :width].copy_(inputs.transpose(0, 1))
    return Activations(
        joined,
        gates=stored(steps, batch, 4 * cell),
        cells=accumulated(steps + 1, batch, cell),
        projected=stored(steps, batch, size),
        moments=accumulated(steps, batch, 2),
    )


def weight_gradients(
    kernels: StepKernels,
    weights: RecurrenceWeights,
    activations: Activations,
    grads: Gradients,
) -> list[Tensor | None]:
    """The gradients of a layer's weights, once the gradients of the gates have taken
    the gates' place.
    """
    # of W_x, W_h, the bias and W_p: rows one behind the other, in the type of sums,
    # however the weights are stored
    outs = [weights.bias.new_empty(weight.shape) for weight in weights[:4]]
    kernels.put_weight_gradient(
        activations.gates.flatten(0, 1),
        activations.joined[:-1].flatten(0, 1),
        outs[:2],
    )
    kernels.put_weight_gradient(
        grads.projected.flatten(0, 1), grads.gated_cells.flatten(0, 1), outs[3:]
    )
    torch.sum(grads.bias, dim=0, out=outs[2])
    # a second backward pass, which would find other values in them, is an error
    increment_version(activations)
    of_norm = [None] * 2 if weights.norm_weight is None else grads.norm.sum(0)
    return [*outs, *of_norm]


def matmul_into(out: Tensor, matmul: Matmul, x: Tensor) -> None:
    """Put the result in `out`, whether or not the library can write there."""
    result = matmul(x, out)
    if result is not out:
        out.copy_(result)
