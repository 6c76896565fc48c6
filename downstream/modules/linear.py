"""Linear layer: `torch.nn.functional.linear` with the fast matrix products of `elmoc.kernels.matmul`.

PyTorch multiplies float32 matrices by MKL, which on some processors runs at half the rate.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmoc.kernels.matmul import prepare_input_gradient, prepare_linear, weight_gradient_matmul


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
        of_x = prepare_input_gradient(weight)(gradient, torch.empty_like(x)) if ctx.needs_input_grad[0] else None
        return of_x, weight_gradient_matmul(gradient, x), gradient.sum(dim=0)
