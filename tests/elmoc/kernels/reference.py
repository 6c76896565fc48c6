"""The reference kernels of an LSTM step: plain PyTorch, on any device and in any type."""

import torch
from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.lstm_step import KERNELS, GatesBackward, GatesForward, OutputBackward, OutputForward, StepTensors
from torch import Tensor


class ReferenceKernels:
    """The kernels in plain PyTorch."""

    description = "PyTorch"

    def parts(self, streams: int) -> tuple[int, int]:
        """One: each sum over streams is taken whole."""
        return 1, 1

    def run(self, weights: RecurrenceWeights, options: RecurrenceOptions, step: int, tensors: StepTensors) -> None:
        getattr(self, KERNELS[type(tensors)])(weights, options, step, tensors)

    def gates_forward(
        self, weights: RecurrenceWeights, options: RecurrenceOptions, step: int, tensors: GatesForward
    ) -> None:
        preactivation, cell_before, gates, cell, gated_cell = tensors
        i, f, g, o = (preactivation.to(weights.bias.dtype) + weights.bias).chunk(4, dim=1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        new = i * g + f * cell_before
        if options.cell_clip:
            new = new.clamp(-options.cell_clip, options.cell_clip)
        cell.copy_(_where_active(options.lengths, step, new, cell_before))
        for place, gate in zip(gates.chunk(4, dim=1), (i, f, g, o), strict=True):
            place.copy_(_where_active(options.lengths, step, gate, 0.0))
        gated_cell.copy_(_where_active(options.lengths, step, o * torch.tanh(new), 0.0))

    def output_forward(
        self, weights: RecurrenceWeights, options: RecurrenceOptions, step: int, tensors: OutputForward
    ) -> None:
        projected, hidden_before, hidden, moments, outputs = tensors
        value = _clipped(projected.to(outputs.dtype), options.projection_clip)
        if weights.norm_weight is not None and weights.norm_bias is not None:
            variance, mean = torch.var_mean(value, dim=1, correction=0, keepdim=True)
            scale = (variance + options.norm_epsilon).rsqrt()
            moments.copy_(torch.cat((mean, scale), dim=1))
            value = (value - mean) * scale * weights.norm_weight + weights.norm_bias
        if options.dropout_mask is not None:
            value = value * options.dropout_mask
        hidden.copy_(_where_active(options.lengths, step, value, hidden_before.to(value.dtype)))
        outputs.copy_(_where_active(options.lengths, step, value, 0.0))

    def output_backward(
        self, weights: RecurrenceWeights, options: RecurrenceOptions, step: int, tensors: OutputBackward
    ) -> None:
        grad_outputs, grad_hidden, grad_next, projected, moments, grad_projected, grad_norm = tensors
        if grad_next is not None:
            grad_hidden.copy_(_where_active(options.lengths, step + 1, grad_next.to(grad_hidden.dtype), grad_hidden))
        grad = _where_active(options.lengths, step, grad_outputs + grad_hidden, 0.0)
        if options.dropout_mask is not None:
            grad = grad * options.dropout_mask
        if weights.norm_weight is not None:
            mean, scale = moments.split(1, dim=1)
            normal = (_clipped(projected.to(grad.dtype), options.projection_clip) - mean) * scale
            grad_norm[0, 0] += (grad * normal).sum(0)
            grad_norm[0, 1] += grad.sum(0)
            grad = grad * weights.norm_weight
            grad = scale * (grad - grad.mean(1, keepdim=True) - normal * (grad * normal).mean(1, keepdim=True))
        if options.projection_clip:
            grad = grad * (projected.abs() <= options.projection_clip)
        grad_projected.copy_(grad)

    def gates_backward(
        self, weights: RecurrenceWeights, options: RecurrenceOptions, step: int, tensors: GatesBackward
    ) -> None:
        grad_gated_cell, cell, cell_before, gates, gated_cell, grad_cell, grad_bias = tensors
        i, f, g, o = gates.to(cell.dtype).chunk(4, dim=1)
        grad_gated_cell = grad_gated_cell.to(cell.dtype)
        tanh_cell = torch.tanh(cell)
        grad = grad_cell + grad_gated_cell * o * (1 - tanh_cell * tanh_cell)
        if options.cell_clip:
            grad = grad * (cell.abs() < options.cell_clip)
        grad_preactivation = torch.cat(
            (
                grad * g * i * (1 - i),
                grad * cell_before * f * (1 - f),
                grad * i * (1 - g * g),
                grad_gated_cell * tanh_cell * o * (1 - o),
            ),
            dim=1,
        )
        grad_preactivation = _where_active(options.lengths, step, grad_preactivation, 0.0)
        grad_cell.copy_(_where_active(options.lengths, step, grad * f, grad_cell))
        grad_bias[0] += grad_preactivation.sum(0)
        gated_cell.copy_(_where_active(options.lengths, step, o * tanh_cell, 0.0))
        gates.copy_(grad_preactivation)  # last: i, f, g and o may be views of it


def _clipped(value: Tensor, limit: float) -> Tensor:
    return value.clamp(-limit, limit) if limit else value


def _where_active(lengths: Tensor | None, step: int, value: Tensor, other: Tensor | float) -> Tensor:
    """`value` [B, …] for the streams that go on at this step, `other` for those that have ended."""
    return value if lengths is None else torch.where((step < lengths).unsqueeze(1), value, other)
