"""Worker processes: a function applied to many items in order, without hanging when a process dies."""

import ctypes
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from typing import TypeVar

from data_scripts.parts.options import MOST_WORKERS
from elmoc.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
_PR_SET_PDEATHSIG = 1  # of Linux's sys/prctl.h


def default_workers() -> int:
    """The number of CPU cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, look_ahead: int = 4
) -> Iterator[Result]:
    """Yield `function(item)` for all items, in their order, computed by `workers` forked processes.

    With one worker everything happens in this process. At most `look_ahead · workers` items are under way, so `items`
    may be endless. An exception of `function` is raised here; a worker that dies (killed for its memory) is an
    `InputError`. Workers see what this process had in memory, and end with it.
    """
    if workers == 1:
        yield from map(function, items)
        return
    others = active_children()
    executor = ProcessPoolExecutor(
        workers, mp_context=get_context("fork"), initializer=_start_worker, initargs=(os.getpid(),)
    )
    processes: list[BaseProcess] = []
    try:
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(executor.submit(function, item))
            processes = processes or [each for each in active_children() if each not in others]
            if len(pending) >= look_ahead * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        executor.shutdown(wait=True)
        raise InputError(
            f"a worker process {how_it_ended(processes)}: run the command again with fewer --workers"
        ) from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def how_it_ended(processes: Sequence[BaseProcess]) -> str:
    """How the first of the processes that ended by itself did so, e.g. `was ended by SIGSEGV`.

    The others end by SIGTERM, when their pool is broken.
    """
    signals = [-each.exitcode for each in processes if each.exitcode and each.exitcode < 0]
    if signal.SIGKILL in signals:
        return "was killed, probably because memory ran out"
    names = [signal.Signals(number).name for number in sorted(signals, key=lambda number: number == signal.SIGTERM)]
    return f"was ended by {names[0]}" if names else "ended without a result"


def end_with(parent: int) -> None:
    """Have this process killed as soon as its `parent` ends, in whatever way (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _start_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted worker ends without a traceback
    end_with(parent)
