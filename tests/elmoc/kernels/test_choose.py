"""Choice of kernels: the compiled ones where they can be had, and why not where the reference runs."""

from collections.abc import Iterator
from unittest.mock import Mock, PropertyMock

import pytest
import torch

from elmoc.kernels.choose import choose_kernels
from elmoc.kernels.reference import ReferenceKernels


def test_without_a_compiler_pytorch_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    choose_kernels.cache_clear()
    try:
        kernels = choose_kernels("cpu", torch.float32, torch.float32)
    finally:
        choose_kernels.cache_clear()
    assert isinstance(kernels, ReferenceKernels)
    assert kernels.description == "PyTorch, because there is no C++ compiler (no-such-compiler)"


@pytest.fixture
def triton_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mock]:
    """Triton's driver, to say what `active.utils` does."""
    triton_runtime = pytest.importorskip("triton.runtime", reason="Triton is not installed")
    driver = Mock()
    monkeypatch.setattr(triton_runtime, "driver", driver)
    choose_kernels.cache_clear()
    yield driver
    choose_kernels.cache_clear()


def test_where_triton_cannot_compile_its_driver_pytorch_runs_and_says_so(triton_driver: Mock) -> None:
    type(triton_driver.active).utils = PropertyMock(side_effect=RuntimeError("Failed to find C compiler.\nSet CC"))
    kernels = choose_kernels("cuda", torch.float32, torch.float32)
    assert isinstance(kernels, ReferenceKernels)
    assert kernels.description == ("PyTorch, because Triton's driver cannot be had (Failed to find C compiler. Set CC)")


def test_where_it_can_triton_runs(triton_driver: Mock) -> None:
    assert choose_kernels("cuda", torch.bfloat16, torch.float32).description == "Triton"


def test_kernels_say_what_they_are() -> None:
    assert choose_kernels("cpu", torch.bfloat16, torch.float32).description.startswith("C++ compiled by ")
    assert choose_kernels("cpu", torch.float64, torch.float64).description == (
        "PyTorch, because weights are in torch.float64"
    )
