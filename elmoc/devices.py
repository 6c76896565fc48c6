"""Devices: the PyTorch device that a user names, checked to be there, and the memory that it has left."""

import os
import re
from contextlib import suppress
from pathlib import Path

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


def free_memory(device: torch.device) -> int:
    """Bytes that this process may still allocate on a device, swap space and the limit of a container included."""
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError):  # no Linux
        found = re.findall(r"^(?:MemAvailable|SwapFree):\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
        free = 1024 * sum(map(int, found))
    with suppress(OSError, ValueError):  # no control group, or no limit in it
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        free = min(free, limit - int(re.findall(r"\banon (\d+)", Path("/sys/fs/cgroup/memory.stat").read_text())[0]))
    return free
