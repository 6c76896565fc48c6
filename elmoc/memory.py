"""How does a process keep the memory that it frees?"""

import ctypes
import platform

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
"""Names of mallopt(3)."""


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
