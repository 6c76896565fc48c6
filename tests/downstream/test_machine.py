"""Are faster products still float32 products, and is a coarse way refused?"""

from collections.abc import Iterator

import pytest
import torch

from downstream import machine


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def test_products_have_the_error_of_float32() -> None:
    machine.use_faster_products()
    left, right = torch.randn(100, 300), torch.randn(300, 50)
    error = (left.double() @ right.double() - left @ right).abs().max()
    assert error < 300 * 2**-22, "bfloat16 would be off by about 0.1"


def test_a_way_that_rounds_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    product = torch.Tensor.__matmul__

    def rounding(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        if left.dtype == torch.float32 and torch.get_float32_matmul_precision() == "medium":
            return product(left.bfloat16(), right.bfloat16()).float()
        return product(left, right)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounding)
    assert not machine.use_faster_products()
    assert torch.get_float32_matmul_precision() == "highest"
    monkeypatch.setattr(torch.Tensor, "__matmul__", product)
    assert machine.use_faster_products()
    assert torch.get_float32_matmul_precision() == "medium"
