"""Devices and precisions: those that a user names are checked to be there."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.devices import CPU, autocast, checked_device, choose_precision, factor_dtype
from elmoc.errors import InputError

from elmoc import devices


@pytest.fixture
def two_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.usefixtures("two_accelerators")
def test_auto_is_the_accelerator_and_each_process_takes_another() -> None:
    assert checked_device("auto") == checked_device("cuda") == torch.device("cuda", 0)
    assert checked_device("auto", local_rank=1) == checked_device("cuda:1") == torch.device("cuda", 1)
    assert checked_device("cuda:0", local_rank=1) == torch.device("cuda", 0)
    assert checked_device("cpu", local_rank=1) == checked_device("cpu:0") == CPU
    for number in (1, np.int64(1), torch.device("cuda:1"), torch.device("cuda", 1)):
        assert checked_device(number, local_rank=0) == torch.device("cuda", 1)
    assert checked_device(None) == checked_device(torch.device("cpu")) == checked_device(torch.device("cpu:0")) == CPU
    with pytest.raises(InputError, match="cuda:2 is not there, PyTorch sees 2 CUDA devices"):
        checked_device(2)


OTHERS = ("gpu", "cuda:", "cuda:x", "cpu:1", "cuda:0\n", "", "1", -1, 0.5, True, b"cpu", torch.device("meta"))


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_of_no_device(name: Any) -> None:
    with pytest.raises(InputError, match="is not a device: use auto, cpu, cuda or cuda:N"):
        checked_device(name)


@pytest.mark.parametrize(
    ("usable", "compiled", "auto", "packed"),
    [
        (["amx", "avx512_bf16", "avx512"], ["amx", "avx512_bf16", "avx512"], "bf16", "bf16"),
        (["amx", "avx512_bf16", "avx512"], ["avx512_bf16", "avx512"], "bf16", "int8"),  # an older compiler
        (["amx", "avx512_bf16", "avx512"], ["avx512"], "float32", "int8"),  # a still older one
        (["amx", "avx512_bf16", "avx512"], [], "float32", "float32"),
        (["avx512"], ["avx512"], "float32", "int8"),
        ([], ["baseline"], "float32", "float32"),
    ],
)
def test_auto_takes_what_kernels_are_compiled_for(
    usable: list[str], compiled: list[str], auto: str, packed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "usable_sets", lambda: usable)
    monkeypatch.setattr(devices, "compiled_sets", lambda name: compiled)
    assert choose_precision("auto", CPU) == auto
    assert choose_precision("auto", CPU, packed=True) == packed
    assert choose_precision("float32", CPU, packed=True) == "float32"
    assert choose_precision("int8", CPU) == "int8"
    with pytest.raises(InputError, match="int8 is for inference on the CPU, not for cuda"):
        choose_precision("int8", torch.device("cuda"))
    if "amx" in usable:
        assert choose_precision("bf16", CPU) == "bf16"
    else:
        with pytest.raises(InputError, match="bf16 instructions, and cpu has none that may be used"):
            choose_precision("bf16", CPU)
    with pytest.raises(InputError, match="'fp8' is not a precision: use auto, float32, bf16, int8"):
        choose_precision("fp8", CPU)
    for precision, dtype in (("float32", torch.float32), ("bf16", torch.bfloat16)):
        with autocast(CPU, precision):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == factor_dtype(precision) == dtype


def test_peak_memory_is_of_one_process_in_bytes() -> None:
    code = "from elmoc.devices import CPU, peak_memory; print(peak_memory(CPU))"
    begun = f"import os, sys; large = b'.' * 2**30; os.execl(sys.executable, sys.executable, '-c', {code!r})"
    assert 2**25 < int(subprocess.check_output([sys.executable, "-c", begun])) < 2**30
