"""Process-wide settings: how threads wait for each other, and how freed memory is kept."""

import ctypes
import os
import platform

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
"""Names of mallopt(3)."""


def wait_without_spinning() -> None:
    """Have OpenMP's threads sleep while they wait, unless the user says otherwise; to be called before PyTorch loads.

    By default they spin, which on a busy machine takes the core that the awaited thread needs: a feature dump beside
    one other process took over six times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def keep_freed_memory() -> None:
    """Let freed memory be used again instead of going back to the system (glibc only; elsewhere nothing happens).

    A training step allocates and frees hundreds of megabytes. The system hands every page out anew, zeroed, and that
    takes as long as a matrix product over it. To be called before there are other threads.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)
        mallopt(M_ARENA_MAX, 1)
