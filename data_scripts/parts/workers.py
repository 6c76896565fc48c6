"""Worker processes: a function applied to many items in order, without hanging when a process dies."""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TypeVar

from elmoc.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_workers() -> int:
    """The number of CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int, look_ahead: int = 4
) -> Iterator[Result]:
    """Yield `function(item)` for all items, in their order, computed by `workers` forked processes.

    With one worker everything happens in this process. At most `look_ahead · workers` items are under way, so `items`
    may be endless. An exception of `function` is raised here; a worker that dies (killed for its memory) is an
    `InputError`. Workers see what this process had in memory, and end with it.
    """
    if workers < 1:
        raise InputError(f"--workers {workers}: at least one worker is needed")
    if workers == 1:
        yield from map(function, items)
        return
    executor = ProcessPoolExecutor(
        workers, mp_context=get_context("fork"), initializer=_start_worker, initargs=(os.getpid(),)
    )
    try:
        pending: deque[Future[Result]] = deque()
        for item in items:
            pending.append(executor.submit(function, item))
            if len(pending) >= look_ahead * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool:
        raise InputError(
            "a worker process was killed, probably because memory ran out: run the command again with fewer --workers"
        ) from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _start_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted worker ends without a traceback
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
