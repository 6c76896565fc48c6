"""Matrix multiplications of a linear layer, with and without oneDNN's own operators."""

import pytest
import torch
from elmoc.kernels.cpu import CompiledKernels
from elmoc.kernels.matmul import prepare_input_gradient, prepare_linear, put_weight_gradient, uses_onednn

from elmoc.kernels import matmul

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-1}


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_they_are_pytorchs(dtype: torch.dtype, onednn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not onednn:
        monkeypatch.setattr(matmul, "_onednn_types", tuple)
    torch.manual_seed(0)
    x, weight, other = (torch.randn(shape).to(dtype) for shape in ((5, 333), (70, 333), (5, 200)))
    assert onednn or not uses_onednn(weight)
    tolerance = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(prepare_linear(weight)(x, x.new_empty(5, 70)), x @ weight.t(), **tolerance)
    y = prepare_input_gradient(weight)(x @ weight.t(), x.new_empty(5, 333))
    torch.testing.assert_close(y, x @ weight.t() @ weight, atol=10 * TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    fast = [] if dtype == torch.float64 else [CompiledKernels(dtype).put_weight_gradient]
    for put in (put_weight_gradient, *fast):
        parts = [torch.empty(333, width, dtype=torch.promote_types(dtype, torch.float32)) for width in (70, 130)]
        long = [torch.cat((each, each.new_zeros(2557, each.shape[1]), each)) for each in (x, other)]
        put(*long, parts)
        torch.testing.assert_close(torch.cat(parts, dim=1), 2 * x.t().to(parts[0]) @ other.to(parts[0]), **tolerance)
