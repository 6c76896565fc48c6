"""Worker processes: a function applied to many items in order, without hanging when a process dies."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from typing import TypeVar

from data_scripts.parts.options import MOST_WORKERS
from elmoc.errors import InputError
from elmoc.process import available_cores, end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")
_LOOK_AHEAD = 4
"""Items under way for each worker."""


def default_workers() -> int:
    """One for each CPU core that this process may use."""
    return min(available_cores(), MOST_WORKERS)


def parallel_map(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Yield `function(item)` for all items, in their order, computed by `workers` forked processes.

    With one worker everything happens in this process. A few items a worker are under way at most, so `items` may be
    endless. An exception of `function` is raised here; a worker that dies (killed for its memory) is an `InputError`.
    Workers see what this process had in memory, and end with it.
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
            if len(pending) >= _LOOK_AHEAD * workers:
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


def _start_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted worker ends without a traceback
    end_with_parent(parent, signal.SIGKILL)
