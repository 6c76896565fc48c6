"""Choice of kernels: the compiled ones where they can be had, and why not where the plain recurrence runs."""

from collections.abc import Iterator
from unittest.mock import Mock, PropertyMock

import pytest
import torch
from elmoc.encoders.fused_recurrence import choose_kernels


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    choose_kernels.cache_clear()
    yield
    choose_kernels.cache_clear()


def test_on_a_cpu_they_are_compiled_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_kernels("cpu", torch.bfloat16, torch.float32).description == "C++"
    assert "torch.float64" in choose_kernels("cpu", torch.float64, torch.float64)
    choose_kernels.cache_clear()
    monkeypatch.setattr("elmoc.kernels.loading.usable_sets", lambda highest: [])
    assert choose_kernels("cpu", torch.float32, torch.float32) == "cpu.cpp is not compiled"


def test_on_a_gpu_triton_runs_where_its_driver_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Mock()
    monkeypatch.setattr(pytest.importorskip("triton.runtime", reason="Triton is not installed"), "driver", driver)
    assert choose_kernels("cuda", torch.bfloat16, torch.float32).description == "Triton"
    choose_kernels.cache_clear()
    type(driver.active).utils = PropertyMock(side_effect=RuntimeError("Failed to find C compiler.\nSet CC"))
    assert "Failed to find C compiler. Set CC" in choose_kernels("cuda", torch.float32, torch.float32)
