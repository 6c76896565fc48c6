"""The fast linear layer: PyTorch's, in outputs and gradients."""

import pytest
import torch
from downstream.modules.highway_lstm import linear
from torch import Tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("part", [False, True], ids=["whole weight", "part of a weight"])
def test_outputs_and_gradients(dtype: torch.dtype, part: bool) -> None:
    torch.manual_seed(4)
    data = [torch.randn(size, dtype=dtype) for size in ((9, 5), (7, 8 if part else 5), (7,))]
    target = torch.randn(9, 7, dtype=dtype)
    results = []
    for product in (linear, torch.nn.functional.linear):
        x, weight, bias = leaves = [tensor.clone().requires_grad_() for tensor in data]
        y: Tensor = product(x, weight[:, 2:7] if part else weight, bias)
        (y * target).sum().backward()
        results.append([y, *(leaf.grad for leaf in leaves)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_inputs_that_need_no_gradient() -> None:
    weight = torch.randn(3, 2, requires_grad=True)
    linear(torch.ones(4, 2), weight, torch.zeros(3, requires_grad=True)).sum().backward()
    torch.testing.assert_close(weight.grad, torch.full((3, 2), 4.0))
