"""Choice of kernels: the compiled ones where they can be had, and why not where the plain recurrence runs."""

from collections.abc import Iterator
from unittest.mock import Mock, PropertyMock

import pytest
import torch

from elmoc.encoders.fused_recurrence import choose_kernels


def test_without_a_compiler_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    choose_kernels.cache_clear()
    try:
        kernels = choose_kernels("cpu", torch.float32, torch.float32)
    finally:
        choose_kernels.cache_clear()
    assert kernels == "there is no C++ compiler (no-such-compiler)"


@pytest.fixture
def triton_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mock]:
    """Triton's driver, to say what `active.utils` does."""
    triton_runtime = pytest.importorskip("triton.runtime", reason="Triton is not installed")
    driver = Mock()
    monkeypatch.setattr(triton_runtime, "driver", driver)
    choose_kernels.cache_clear()
    yield driver
    choose_kernels.cache_clear()


def test_where_triton_cannot_compile_its_driver_there_are_none(triton_driver: Mock) -> None:
    type(triton_driver.active).utils = PropertyMock(side_effect=RuntimeError("Failed to find C compiler.\nSet CC"))
    kernels = choose_kernels("cuda", torch.float32, torch.float32)
    assert kernels == "Triton's driver cannot be had (Failed to find C compiler. Set CC)"


def test_where_it_can_triton_runs(triton_driver: Mock) -> None:
    assert choose_kernels("cuda", torch.bfloat16, torch.float32).description == "Triton"


def test_kernels_say_what_they_are() -> None:
    assert choose_kernels("cpu", torch.bfloat16, torch.float32).description.startswith("C++ compiled by ")
    assert choose_kernels("cpu", torch.float64, torch.float64) == "weights are in torch.float64"
