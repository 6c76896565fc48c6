"""Devices: the PyTorch device that a user names, checked to be there."""

from contextlib import suppress

import torch

from elmoc.errors import InputError


def checked_device(device: str) -> torch.device:
    """The torch device of that name; an unknown or absent one is an `InputError`."""
    checked = None
    with suppress(RuntimeError):  # PyTorch does not know the name
        checked = torch.device(device)
    if checked is None or checked.type not in ("cpu", "cuda"):
        raise InputError(f"{device!r} is not a device: use cpu, cuda or cuda:N")
    if checked.type == "cuda" and (checked.index or 0) >= torch.cuda.device_count():
        raise InputError(f"{device} is not there: PyTorch sees {torch.cuda.device_count()} CUDA devices")
    return checked
