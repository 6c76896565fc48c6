"""Kinds of kernels that are compared with each other."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from elmoc.encoders.lstm_inference import inference_kernels
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


avx2_kernels = partial(inference_kernels, highest="avx2")
"""Those of inference that this processor would have without AVX-512; None where there are none."""
