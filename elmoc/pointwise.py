"""What does a fused recurrence compute between its matrix products?

`TorchKernels` says it in PyTorch and runs anywhere; `choose_kernels` gives compiled kernels with the same methods where
there are some. Every kernel handles one step of all streams and writes into tensors that it is given.
Letters: B streams, P projection, C cell. S is the type that activations are stored in (bfloat16, float32, float64), A
that of weights, cell state and layer normalisation (float32, float64).
"""

import importlib.util
from functools import lru_cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class LayerConstants(NamedTuple):
    """What stays the same for all steps of a window."""

    bias: Tensor
    """A [4C]"""
    norm_weight: Tensor | None
    """A [P]; None switches layer normalisation off"""
    norm_bias: Tensor | None
    """A [P]"""
    mask: Tensor | None
    """A [B, P]: dropout"""
    lengths: Tensor | None
    """int64 [B]: a stream whose length is no more than `step` stands still (see `plain_recurrence`)"""
    cell_clip: float
    projection_clip: float
    norm_epsilon: float


class PointwiseKernels(Protocol):
    """The four kernels of a step."""

    description: str
    """What runs, for people."""

    def parts(self, streams: int) -> tuple[int, int]:
        """How many partial sums of the gradients of the norm and of the bias are kept."""
        ...

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
        """i, f, g, o, c_t and σ(o)·tanh(c_t) from the recurrent product.

        raw          S [B, 4C]: W_x a_t + W_h h_{t-1}; may be `gates` itself
        cell_before  A [B, C]
        gates        S [B, 4C], written: after σ and tanh
        cell         A [B, C], written
        memory       S [B, C], written: σ(o)·tanh(c_t)
        """
        ...

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
        """h_t from the projection.

        raw            S [B, P]: W_p (σ(o)·tanh(c_t))
        hidden_before  S [B, P], rows may lie apart
        hidden         S [B, P], rows as far apart, written
        moments        A [B, 2], written: mean and 1/deviation of the clipped projection
        outputs        A [B, P], written: h_t, zero where a stream has ended
        """
        ...

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
        """The mirror of `output_forward`.

        grad_outputs  A [B, P]
        grad_hidden   A [B, P], updated: what reaches h_t from the steps after it
        grad_next     S [B, P], rows may lie apart: what the next step's product adds to that; None at the last step
        grad_raw      S [B, P], written
        grad_norm     A [parts of the norm, 2, P], added to
        """
        ...

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
        """The mirror of `gates_forward`.

        grad_memory  S [B, C]
        gates        S [B, 4C], read as after σ and tanh, written: the gradient before them
        memory       S [B, C], written again, so that nobody has to keep it
        grad_cell    A [B, C], updated: what reaches c_t, then what reaches c_{t-1}
        grad_bias    A [parts of the bias, 4C], added to
        """
        ...


class TorchKernels:
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
        """See `PointwiseKernels`."""
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
        """See `PointwiseKernels`."""
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
        """See `PointwiseKernels`."""
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
        """See `PointwiseKernels`."""
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


@lru_cache
def choose_kernels(device: str, stored: torch.dtype, accumulated: torch.dtype) -> PointwiseKernels:
    """The fastest kernels for a kind of device ("cpu", "cuda"), and the types S and A."""
    if accumulated != torch.float32:
        return TorchKernels(f"weights are in {accumulated}")
    if device == "cpu" and stored in (torch.float32, torch.bfloat16):
        from elmoc.cpu_kernels import CompiledKernels, KernelBuildError

        try:
            return CompiledKernels(stored)
        except KernelBuildError as error:
            return TorchKernels(str(error))
    if device == "cuda":
        if importlib.util.find_spec("triton") is None:
            return TorchKernels("Triton is not installed")
        from elmoc.triton_kernels import TritonKernels

        return TritonKernels()
    return TorchKernels()
