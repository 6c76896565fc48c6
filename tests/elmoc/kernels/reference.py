"""The reference kernels of an LSTM step: plain PyTorch, on any device and in any type."""

import torch
from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.lstm_step import KERNELS, GatesBackward, GatesForward, OutputBackward, OutputForward, StepTensors
from elmoc.kernels.matmul import put_weight_gradient
from torch import Tensor


class ReferenceKernels:
    """The kernels in plain PyTorch."""

    description = "PyTorch"
    put_weight_gradient = staticmethod(put_weight_gradient)

    def parts(self, streams: int) -> tuple[int, int]:
        """One: each sum over streams is taken whole."""
        return 1, 1

    def run(self, weights: RecurrenceWeights, options: RecurrenceOptions, tensors: StepTensors) -> None:
        getattr(self, KERNELS[type(tensors)])(weights, options, tensors)

    def gates_forward(self, weights: RecurrenceWeights, options: RecurrenceOptions, tensors: GatesForward) -> None:
        preactivation, cell_before, gates, cell, gated_cell = tensors
        i, f, g, o = (preactivation.to(weights.bias.dtype) + weights.bias).chunk(4, dim=1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        new = i * g + f * cell_before
        if options.cell_clip:
            new = new.clamp(-options.cell_clip, options.cell_clip)
        cell.copy_(new)
        for place, gate in zip(gates.chunk(4, dim=1), (i, f, g, o), strict=True):
            place.copy_(gate)
        gated_cell.copy_(o * torch.tanh(new))

    def output_forward(self, weights: RecurrenceWeights, options: RecurrenceOptions, tensors: OutputForward) -> None:
        projected, outputs, hidden, moments = tensors
        value = _clipped(projected.to(outputs.dtype), options.projection_clip)
        if weights.norm_weight is not None and weights.norm_bias is not None:
            variance, mean = torch.var_mean(value, dim=1, correction=0, keepdim=True)
            scale = (variance + options.norm_epsilon).rsqrt()
            moments.copy_(torch.cat((mean, scale), dim=1))
            value = (value - mean) * scale * weights.norm_weight + weights.norm_bias
        if options.dropout_mask is not None:
            value = value * options.dropout_mask
        hidden.copy_(value)
        outputs.copy_(value)

    def output_backward(self, weights: RecurrenceWeights, options: RecurrenceOptions, tensors: OutputBackward) -> None:
        grad_outputs, grad_hidden, grad_next, projected, moments, grad_projected, grad_norm = tensors
        grad = grad_outputs + (grad_hidden if grad_next is None else grad_next)
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

    def gates_backward(self, weights: RecurrenceWeights, options: RecurrenceOptions, tensors: GatesBackward) -> None:
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
        grad_cell.copy_(grad * f)
        grad_bias[0] += grad_preactivation.sum(0)
        gated_cell.copy_(o * tanh_cell)
        gates.copy_(grad_preactivation)  # last: i, f, g and o may be views of it


def _clipped(value: Tensor, limit: float) -> Tensor:
    return value.clamp(-limit, limit) if limit else value
