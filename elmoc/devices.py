"""Devices: are the PyTorch device and the precision that a user names there?"""

import re

import torch

from elmoc.errors import InputError, shortened

PRECISIONS = ("auto", "float32", "bf16")


def checked_device(device: str) -> torch.device:
    """The torch device of that name; an unknown or absent one is an `InputError`."""
    match = re.fullmatch(r"cpu(:0)?|cuda(:(?P<index>[0-9]{1,9}))?", device)
    if match is None:
        raise InputError(
            f"{shortened(device)!r} is not a device: use cpu, cuda or cuda:N"
        )
    devices = torch.cuda.device_count()
    if (
        device.startswith("cuda") and int(match["index"] or 0) >= devices
    ):  # PyTorch itself takes 256 for 0
        raise InputError(
            f"{device} is not there, PyTorch sees {devices} CUDA devices: use another, or cpu"
        )
    return torch.device(device)


def checked_precision(precision: str, device: torch.device) -> torch.dtype:
    """The type of the factors of matrix products that a precision (`auto`, `float32`,
    `bf16`) means on a device.

    `auto` is bf16 where the device multiplies it in hardware. Another name is an
    `InputError`, and so is bf16 where the device has no such instructions.
    """
    if precision not in PRECISIONS:
        raise InputError(
            f"{shortened(precision)!r} is not a precision: use {', '.join(PRECISIONS)}"
        )
    bf16 = precision != "float32" and has_bf16(device)
    if precision == "bf16" and not bf16:
        raise InputError(
            f"precision bf16 needs bf16 instructions, which {device} does not have: use float32 or auto"
        )
    return torch.bfloat16 if bf16 else torch.float32


def has_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 matrices in hardware."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    # PyTorch has no public name for this; a release without these two is taken to have
    # no bf16
    checks = (
        getattr(torch.cpu, name, None)
        for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )
    return any(check is not None and check() for check in checks)
