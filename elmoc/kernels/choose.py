"""Choice of the kernels of an LSTM step: compiled ones where a device and types have them, else the reference."""

from functools import lru_cache

import torch

from elmoc.errors import reason
from elmoc.kernels.lstm_step import StepKernels
from elmoc.kernels.reference import ReferenceKernels


@lru_cache
def choose_kernels(device: str, stored: torch.dtype, accumulated: torch.dtype) -> StepKernels:
    """The fastest kernels for a kind of device ("cpu", "cuda"), and the types S and A."""
    if accumulated != torch.float32:
        return ReferenceKernels(f"weights are in {accumulated}")
    if device == "cpu" and stored in (torch.float32, torch.bfloat16):
        from elmoc.kernels.compiling import KernelBuildError
        from elmoc.kernels.cpu import CompiledKernels

        try:
            return CompiledKernels(stored)
        except KernelBuildError as error:
            return ReferenceKernels(str(error))
    if device == "cuda":
        try:
            from triton.runtime import driver

            driver.active.utils  # noqa: B018 (compiled here, where it never was, by a C compiler with Python's headers)
        except Exception as error:  # it is not installed; what else it may raise is not documented
            return ReferenceKernels(f"Triton's driver cannot be had ({reason(error)})")
        from elmoc.kernels.gpu import TritonKernels

        return TritonKernels()
    return ReferenceKernels()
