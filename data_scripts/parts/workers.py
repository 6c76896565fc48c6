"""Worker processes: how is a function applied to many items in order by several
processes?
"""

import argparse
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from elmoc.process import available_cores, end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")
# Items under way for each worker: an endless iterable of items is not read into memory.
_LOOK_AHEAD = 4
# What a worker does with items: it is forked with it, not sent it.
_function: Callable[[Any], Any] | None = None


def parallel_map(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Yield `function(item)` for all items, in their order, computed by forked
    processes; by this one where it is one.

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
    except KeyboardInterrupt:
        for worker in set(active_children()) - others:
            # training of fastText takes hours, and may be the only process that was not
            # interrupted
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(parent: int, function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # an interrupted worker ends without a traceback
    end_with_parent(parent, signal.SIGKILL)


def _do(item: Any) -> Any:
    assert _function is not None
    return _function(item)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add `--workers`, which is one for each core by default."""
    parser.add_argument(
        "--workers",
        type=positive,
        default=available_cores(),
        metavar="N",
        help="processes (all cores)",
    )


def positive(text: str) -> int:
    """A whole number from 1 on, as the type of a command-line option."""
    if (number := int(text)) < 1:
        raise ValueError
    return number
