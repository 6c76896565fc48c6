"""Processes: how threads wait, memory is kept, progress is shown, and child processes
end when they are asked to.
"""

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from elmoc.errors import InputError, is_quiet, reading

# Parameters of mallopt(3), as glibc's malloc.h numbers them, and their values.
_MALLOPT = {
    -4: 0,  # M_MMAP_MAX
    -1: -1,  # M_TRIM_THRESHOLD
    -8: 1,  # M_ARENA_MAX
}
# A number of prctl(2) of Linux: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1
# By these variables of the environment a job knows the process that started it, and the
# file for its error, which is not printed then.
PARENT_VARIABLE = "ELMOC_PARENT"
ERROR_VARIABLE = "ELMOC_ERROR"
# A process of several waits for the others as long as their parts may take.
LONGEST_WAIT = timedelta(days=7)
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
    """Have PyTorch compute in one thread where this process was forked from one that
    has loaded it; to be called before it computes.

    A forked process has none of its parent's threads, and PyTorch would wait for them
    without end.
    """
    torch = sys.modules.get("torch")
    if torch and os.getpid() != _STARTED_IN:
        torch.set_num_threads(1)


def keep_freed_memory() -> None:
    """Keep freed memory for the next allocation instead of returning it to the system
    (no effect without glibc).

    A training step allocates and frees hundreds of megabytes. The system zeroes every
    page that it hands out, which takes as long as a matrix multiplication over it. To
    be called before other threads are started.
    """
    if platform.libc_ver()[0] == "glibc":
        for parameter, value in _MALLOPT.items():
            ctypes.CDLL(None).mallopt(parameter, value)


def progress_bar(**options: Any) -> Any:
    """A bar of tqdm: a widget in a notebook, a line on a terminal and in a file; no bar
    is shown where `quiet` is.

    Args:
        options: of `tqdm.tqdm`.
    """
    from tqdm.auto import tqdm

    # Between two redraws; a file keeps each redraw as a line.
    seconds = 0.5 if sys.stderr.isatty() or "ipykernel" in sys.modules else 30.0
    options |= {"mininterval": seconds, "maxinterval": seconds, "dynamic_ncols": True}
    options["disable"] = is_quiet() or options.get("disable", False)
    return tqdm(**options)


def available_cores() -> int:
    """The number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def torchrun_numbers() -> dict[str, int]:
    """What `torchrun` says of this process in its environment: `rank`, `world_size` and
    `local_rank`; without it those of the only process.

    Raises:
        InputError: a variable is missing, is no number, or does not fit the others.
    """
    usual = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0}
    with reading(f"{', '.join(usual)} in the environment"):
        numbers = {
            name.lower(): int(os.environ.get(name, only))
            for name, only in usual.items()
        }
    if not 0 <= numbers["rank"] < numbers["world_size"]:
        raise InputError(
            f"RANK={numbers['rank']} of WORLD_SIZE={numbers['world_size']} in the "
            "environment cannot be: start several processes by torchrun, and unset "
            "its variables for a single one"
        )
    return numbers


@contextmanager
def connected() -> Iterator[None]:
    """Connect the processes that `torchrun` has started, if any, while the block
    runs.
    """
    with ExitStack() as stack:
        if torchrun_numbers()["world_size"] > 1:
            from torch import distributed

            distributed.init_process_group("gloo", timeout=LONGEST_WAIT)
            stack.callback(distributed.destroy_process_group)
        yield


def wait_for_all(world_size: int) -> None:
    """Wait until all processes that are connected are here.

    Raises:
        InputError: one of them has ended.
    """
    if world_size > 1:
        from torch import distributed

        try:
            # After a plain barrier a process must not end while others are in it.
            distributed.monitored_barrier()
        except RuntimeError as error:
            raise InputError(
                "another process of this command has ended, as its lines say: mend it, "
                "and go on"
            ) from error


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """Have this process get a signal as soon as its `parent`, which started it, ends in
    whatever way (on Linux).

    Where the parent has ended before, this process ends here. By default it is asked to
    stop; SIGKILL ends it at once.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os._exit(1)


def follow_parent() -> None:
    """Where `elmoc.jobs` started this process: end with its parent, and heed Ctrl-C.

    To be called in the main thread, before the work begins.
    """
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is None:
        return
    # `nohup` has SIGHUP ignored, but it is how a job knows that its parent has ended.
    # It comes once for each thread that the parent had.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    end_with_parent(int(parent), signal.SIGHUP)
    # A shell has its background jobs, and so their children, ignore Ctrl-C, but it is
    # how a parent asks its job to stop.
    signal.signal(signal.SIGINT, signal.default_int_handler)
