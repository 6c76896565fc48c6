"""Worker processes: how is a function applied to many items in order by several
processes?
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import active_children, get_context
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from elmoc.errors import InputError
from elmoc.process import end_with_parent, leave_threads_of_parent

Item = TypeVar("Item")
Result = TypeVar("Result")
# The setting of all commands that start workers.
Workers = Annotated[
    int,
    Meta(
        ge=1,
        description="processes",
        extra={"metavar": "N", "option": "--processes --workers"},
    ),
]
# Items under way for each worker: an endless iterable of items is not read into memory.
_LOOK_AHEAD = 4
# The function that a worker applies: the worker is forked with it, since not every
# function can be sent to a process.
_function: Callable[[Any], Any]


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield `function(item)` for all items, in their order, computed by forked
    processes; by this process where `workers` is 1.

    Workers see what this process had in memory, and end with it. An exception of
    `function` is raised here.
    """
    if workers == 1:
        yield from map(function, items)
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("fork"),
        initializer=_start_worker,
        initargs=(os.getpid(), function),
    )
    try:
        futures = (pool.submit(_do, item) for item in items)
        pending = deque(islice(futures, _LOOK_AHEAD * workers))
        while pending:
            yield pending.popleft().result()
            pending.extend(islice(futures, 1))
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process was killed, as the system does where memory runs out: "
            "the same command with fewer --processes needs less"
        ) from error
    except KeyboardInterrupt:
        # Training of fastText takes hours, and its process may be the only one that
        # was not interrupted.
        for worker in set(active_children()) - others:
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(parent: int, function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    # A worker that is asked to stop ends without a traceback.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    end_with_parent(parent, signal.SIGKILL)
    leave_threads_of_parent()


def _do(item: Any) -> Any:
    return _function(item)
