"""The reference kernels of an LSTM step: plain PyTorch, on any device and in any type."""

import torch
from torch import Tensor

from elmoc.kernels.lstm_step import LayerConstants


class ReferenceKernels:
    """The kernels in plain PyTorch; `reason` says why nothing faster runs."""

    def __init__(self, reason: str = "") -> None:
        self.description = f"PyTorch, because {reason}" if reason else "PyTorch"

    def parts(self, streams: int) -> tuple[int, int]:
        """One: nothing here runs beside itself."""
        return 1, 1

    def gates_forward(
        self,
        layer: LayerConstants,
        step: int,
        raw: Tensor,
        cell_before: Tensor,
        gates: Tensor,
        cell: Tensor,
        memory: Tensor,
    ) -> None:
        """See `StepKernels`."""
        i, f, g, o = (raw.to(layer.bias.dtype) + layer.bias).chunk(4, dim=1)
        i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
        new = i * g + f * cell_before
        if layer.cell_clip:
            new = new.clamp(-layer.cell_clip, layer.cell_clip)
        cell.copy_(_where_active(layer.lengths, step, new, cell_before))
        for place, gate in zip(gates.chunk(4, dim=1), (i, f, g, o), strict=True):
            place.copy_(_where_active(layer.lengths, step, gate, 0.0))
        memory.copy_(_where_active(layer.lengths, step, o * torch.tanh(new), 0.0))

    def output_forward(
        self,
        layer: LayerConstants,
        step: int,
        raw: Tensor,
        hidden_before: Tensor,
        hidden: Tensor,
        moments: Tensor,
        outputs: Tensor,
    ) -> None:
        """See `StepKernels`."""
        value = _clipped(raw, outputs.dtype, layer.projection_clip)
        if layer.norm_weight is not None and layer.norm_bias is not None:
            variance, mean = torch.var_mean(value, dim=1, correction=0, keepdim=True)
            scale = (variance + layer.norm_epsilon).rsqrt()
            moments.copy_(torch.cat((mean, scale), dim=1))
            value = (value - mean) * scale * layer.norm_weight + layer.norm_bias
        if layer.mask is not None:
            value = value * layer.mask
        hidden.copy_(_where_active(layer.lengths, step, value, hidden_before.to(value.dtype)))
        outputs.copy_(_where_active(layer.lengths, step, value, 0.0))

    def output_backward(
        self,
        layer: LayerConstants,
        step: int,
        grad_outputs: Tensor,
        grad_hidden: Tensor,
        grad_next: Tensor | None,
        raw: Tensor,
        moments: Tensor,
        grad_raw: Tensor,
        grad_norm: Tensor,
    ) -> None:
        """See `StepKernels`."""
        if grad_next is not None:
            grad_hidden.copy_(_where_active(layer.lengths, step + 1, grad_next.to(grad_hidden.dtype), grad_hidden))
        grad = _where_active(layer.lengths, step, grad_outputs + grad_hidden, 0.0)
        if layer.mask is not None:
            grad = grad * layer.mask
        if layer.norm_weight is not None:
            mean, scale = moments.split(1, dim=1)
            normal = (_clipped(raw, grad.dtype, layer.projection_clip) - mean) * scale
            grad_norm[0, 0] += (grad * normal).sum(0)
            grad_norm[0, 1] += grad.sum(0)
            grad = grad * layer.norm_weight
            grad = scale * (grad - grad.mean(1, keepdim=True) - normal * (grad * normal).mean(1, keepdim=True))
        if layer.projection_clip:
            grad = grad * (raw.abs() <= layer.projection_clip)
        grad_raw.copy_(grad)

    def gates_backward(
        self,
        layer: LayerConstants,
        step: int,
        grad_memory: Tensor,
        cell: Tensor,
        cell_before: Tensor,
        gates: Tensor,
        memory: Tensor,
        grad_cell: Tensor,
        grad_bias: Tensor,
    ) -> None:
        """See `StepKernels`."""
        i, f, g, o = gates.to(cell.dtype).chunk(4, dim=1)
        grad_memory = grad_memory.to(cell.dtype)
        squashed = torch.tanh(cell)
        grad = grad_cell + grad_memory * o * (1 - squashed * squashed)
        if layer.cell_clip:
            grad = grad * (cell.abs() < layer.cell_clip)
        before = torch.cat(
            (
                grad * g * i * (1 - i),
                grad * cell_before * f * (1 - f),
                grad * i * (1 - g * g),
                grad_memory * squashed * o * (1 - o),
            ),
            dim=1,
        )
        before = _where_active(layer.lengths, step, before, 0.0)
        grad_cell.copy_(_where_active(layer.lengths, step, grad * f, grad_cell))
        grad_bias[0] += before.sum(0)
        memory.copy_(_where_active(layer.lengths, step, o * squashed, 0.0))
        gates.copy_(before)  # last: i, f, g and o may be views of it


def _clipped(raw: Tensor, dtype: torch.dtype, limit: float) -> Tensor:
    value = raw.to(dtype)
    return value.clamp(-limit, limit) if limit else value


def _where_active(lengths: Tensor | None, step: int, value: Tensor, other: Tensor | float) -> Tensor:
    """`value` [B, …] for the streams that go on at this step, `other` for those that have ended."""
    return value if lengths is None else torch.where((step < lengths).unsqueeze(1), value, other)
