"""Kinds of kernels that are compared with each other."""

from collections.abc import Callable
from functools import lru_cache

import pytest
import torch
from elmoc.encoders.lstm_inference import InferenceKernels
from elmoc.kernels.compiling import KernelBuildError
from elmoc.kernels.cpu import CompiledKernels
from elmoc.kernels.lstm_step import StepKernels
from tests.elmoc.kernels.reference import ReferenceKernels


def triton_kernels(dtype: torch.dtype) -> StepKernels:
    """The GPU's kernels, run by Triton's interpreter on the CPU (which `tests/conftest.py` asks for)."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if torch.cuda.is_available():
        pytest.skip("Triton compiles for the GPU that is here; tests/pretrain/test_gpu.py runs its kernels there")
    from elmoc.kernels.gpu import TritonKernels

    return TritonKernels()


KERNELS: dict[str, Callable[[torch.dtype], StepKernels]] = {
    "PyTorch": lambda dtype: ReferenceKernels(),
    "compiled": CompiledKernels,
    "Triton": triton_kernels,
}


@lru_cache
def avx2_kernels(dtype: torch.dtype) -> InferenceKernels | None:
    """Those of inference that this processor would have without AVX-512; None where there are none."""
    try:
        return InferenceKernels(dtype, avx512=False)
    except KernelBuildError:
        return None
