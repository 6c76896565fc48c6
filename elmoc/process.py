"""Processes: how threads wait, memory is kept, progress is shown, and child processes
end when they are asked to.
"""

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# parameters of mallopt(3), as glibc's malloc.h numbers them
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
M_ARENA_MAX = -8
# of prctl(2) of Linux: the signal that a process gets when its parent ends
PR_SET_PDEATHSIG = 1
_STARTED_IN = os.getpid()


def wait_without_spinning() -> None:
    """Let OpenMP's threads sleep while they wait, unless OMP_WAIT_POLICY is set; to be
    called before PyTorch loads.

    By default they spin, which on a busy machine takes the core that the awaited thread
    needs: a feature dump beside one other process took over six times as long, a probe
    of entities between twice and seventy times.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def leave_threads_of_parent() -> None:
    """Have PyTorch compute in one thread where this process was forked; to be called
    before it computes.

    A forked process has none of its parent's threads, and PyTorch would wait for them
    without end.
    """
    if os.getpid() != _STARTED_IN:
        import torch

        torch.set_num_threads(1)


def keep_freed_memory() -> None:
    """Keep freed memory for the next allocation instead of returning it to the system
    (no effect without glibc).

    A training step allocates and frees hundreds of megabytes. The system zeroes every
    page that it hands out, which takes as long as a matrix multiplication over it. To
    be called before other threads are started.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)
        mallopt(M_ARENA_MAX, 1)


def progress_bar(**options: Any) -> Any:
    """A tqdm bar that redraws twice a second on a terminal, and every half minute where
    the output is a file.
    """
    from tqdm import tqdm

    interval = 0.5 if sys.stderr.isatty() else 30.0
    return tqdm(
        mininterval=interval, maxinterval=interval, dynamic_ncols=True, **options
    )


def available_cores() -> int:
    """The number of CPU cores that this process may use."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """Have this process get a signal as soon as its `parent`, which started it, ends in
    whatever way (on Linux).

    Where the parent has ended before, this process ends here. By default it is asked to
    stop; SIGKILL ends it at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM, a launcher's stop, be what Ctrl-C is while the block runs."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
