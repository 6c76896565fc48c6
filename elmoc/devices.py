"""Devices: the PyTorch device that a user names, checked to be there."""

import re

import torch

from elmoc.errors import InputError, shortened


def checked_device(device: str) -> torch.device:
    """The torch device of that name; an unknown or absent one is an `InputError`."""
    match = re.fullmatch(r"cpu(:0)?|cuda(:(?P<index>[0-9]{1,9}))?", device)
    if match is None:
        raise InputError(f"{shortened(device)!r} is not a device: use cpu, cuda or cuda:N")
    devices = torch.cuda.device_count()
    if device.startswith("cuda") and int(match["index"] or 0) >= devices:  # PyTorch itself takes 256 for 0
        raise InputError(f"{device} is not there, PyTorch sees {devices} CUDA devices: use another, or cpu")
    return torch.device(device)
