"""Are the products of the fused recurrence products, with and without oneDNN's own operators?"""

import pytest
import torch

from elmoc.kernels import matmul as products
from elmoc.kernels.matmul import onednn_multiplies, product_with, product_with_transpose, transposed_product

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-1}


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_they_are_products(dtype: torch.dtype, onednn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not onednn:
        monkeypatch.setattr(products, "_onednn_types", tuple)
    torch.manual_seed(0)
    x, weight, other = (torch.randn(shape).to(dtype) for shape in ((5, 33), (70, 33), (5, 20)))
    assert onednn or not onednn_multiplies(weight)
    tolerance = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(product_with(weight)(x, x.new_empty(5, 70)), x @ weight.t(), **tolerance)
    y = product_with_transpose(weight)(x @ weight.t(), x.new_empty(5, 33))
    torch.testing.assert_close(y, x @ weight.t() @ weight, atol=10 * TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    torch.testing.assert_close(transposed_product(x, other), x.t() @ other, **tolerance)
