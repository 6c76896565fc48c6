"""Devices: which devices and precisions a user can name, and what each of them does."""

import re
from numbers import Integral
from pathlib import Path
from typing import get_args

import torch

from elmoc.errors import InputError, shortened
from elmoc.kernels.loading import compiled_sets, usable_sets
from elmoc.settings import Precision

CPU = torch.device("cpu")
# Of a processor, those that multiply bf16 matrices.
_BF16_SETS = {"amx", "avx512_bf16"}
# Those where inference in int8 was measured and is the fastest (docs/integrations.md).
_INT8_SETS = {"avx512_bf16", "avx512", "avx2"}


# What names a device in PyTorch's functions, too.
Device = torch.device | str | int | None


def checked_device(device: Device, *, local_rank: int = 0) -> torch.device:
    """The device that is named.

    Args:
        device: `cpu`, `cuda`, `cuda:N`, or `auto`, the GPU where there is one;
            one of PyTorch's objects; the number of a GPU; or None, the CPU.
        local_rank: the number of the GPU where the name has none: every process of a
            machine takes another.

    Raises:
        InputError: no device has the name, or the device is not there.
    """
    # PyTorch knows other accelerators, such as mps, which lacks the float64 that
    # training counts in.
    name = "cpu" if device is None else str(device)
    if isinstance(device, Integral):
        name = f"cuda:{device}"
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    match = re.fullmatch(r"cpu(:0)?|cuda(:(?P<number>[0-9]{1,9}))?", name)
    if match is None:
        raise InputError(
            f"{shortened(name)!r} is not a device: use auto, cpu, cuda or cuda:N"
        )
    if name.startswith("cpu"):
        return CPU
    number = int(match["number"] or local_rank)
    count = torch.cuda.device_count()
    # PyTorch itself takes number 256 for 0
    if number >= count:
        raise InputError(
            f"cuda:{number} is not there, PyTorch sees {count} CUDA devices: use "
            "another, or cpu"
        )
    return torch.device("cuda", number)


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 matrices in hardware."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return not _BF16_SETS.isdisjoint(usable_sets())


def choose_precision(
    precision: Precision, device: torch.device, *, packed: bool = False
) -> Precision:
    """`float32`, `bf16` or `int8`: what a precision means on a device.

    Args:
        precision: that was asked for.
        device: where a model computes.
        packed: whether weights are stored in 8 bits, and kernels run for them.

    Raises:
        InputError: there is no such precision, or the device has no instructions for
            it.
    """
    if precision not in get_args(Precision):
        raise InputError(
            f"{shortened(precision)!r} is not a precision: use "
            f"{', '.join(get_args(Precision))}"
        )
    if precision == "auto":
        if device.type != "cpu":
            return "bf16" if has_bf16(device) else "float32"
        # Without compiled kernels PyTorch's own bf16 is slower than its float32.
        fast = compiled_sets("inference")
        if packed and fast and fast[0] in _INT8_SETS:
            return "int8"
        return "float32" if _BF16_SETS.isdisjoint(fast) else "bf16"
    if precision == "int8" and device.type != "cpu":
        raise InputError(
            f"precision int8 is for inference on the CPU, not for {device}: use auto"
        )
    if precision == "bf16" and not has_bf16(device):
        raise InputError(
            f"precision bf16 needs bf16 instructions, and {device} has none that may "
            "be used: use float32 or auto"
        )
    return precision


def factor_dtype(precision: Precision) -> torch.dtype:
    """The type of the factors of matrix products in a precision that was chosen."""
    return {"bf16": torch.bfloat16, "int8": torch.int8}.get(precision, torch.float32)


def autocast(
    device: torch.device, precision: Precision, *, cache: bool = True
) -> torch.autocast:
    """The context in which modules with float32 weights compute in a precision.

    Args:
        device: where they compute.
        precision: that was chosen.
        cache: whether weights in the type of the factors are kept while it lasts.
    """
    dtype = factor_dtype(precision)
    return torch.autocast(
        device.type, dtype, enabled=dtype != torch.float32, cache_enabled=cache
    )


def peak_memory(device: torch.device) -> int:
    """The most bytes in use at once until now: of the memory of an accelerator, or of
    this process.
    """
    if device.type == "cpu":
        # In KiB; the peak that getrusage(2) tells begins with that of the parent.
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    return torch.get_device_module(device).max_memory_allocated(device)
