"""Process-wide settings: how threads wait for each other, those of a forked process, and freed memory."""

import ctypes
import os
import platform
from functools import lru_cache

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
"""Parameters of mallopt(3), as glibc's malloc.h numbers them."""
_STARTED_IN = os.getpid()


def wait_without_spinning() -> None:
    """Let OpenMP's threads sleep while they wait, unless OMP_WAIT_POLICY is set; to be called before PyTorch loads.

    By default they spin, which on a busy machine takes the core that the awaited thread needs: a feature dump beside
    one other process took over six times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def leave_threads_of_parent() -> None:
    """Have PyTorch compute in one thread where this process was forked; to be called before it computes.

    A forked process has none of its parent's threads, and PyTorch would wait for them without end.
    """
    if os.getpid() != _STARTED_IN:
        _compute_in_one_thread(os.getpid())


@lru_cache
def _compute_in_one_thread(process: int) -> None:
    import torch

    torch.set_num_threads(1)


def keep_freed_memory() -> None:
    """Keep freed memory for the next allocation instead of returning it to the system (no effect without glibc).

    A training step allocates and frees hundreds of megabytes. The system zeroes every page that it hands out, which
    takes as long as a matrix multiplication over it. To be called before other threads are started.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)
        mallopt(M_ARENA_MAX, 1)
