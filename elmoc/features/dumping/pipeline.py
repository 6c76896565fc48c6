"""Pipeline: three stages, each in a thread of its own, with short queues between them."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


AHEAD = 1
"""Items that may wait for the next stage."""


def run_pipeline(source: Iterable[A], work: Callable[[A], Iterable[B]], sink: Callable[[B], object]) -> None:
    """Give all that `work` makes of each item of `source` to `sink`, in order.

    `source` is read in one thread, `work` is done in the thread that calls this, and `sink` is called in another, each
    at most `AHEAD` items before the next. An exception in any of them, an interrupt too, ends all three and is raised
    here, when the threads have ended.
    """
    to_work: Channel[A] = Channel(AHEAD)
    to_sink: Channel[B] = Channel(AHEAD)
    errors: list[BaseException] = []

    def read() -> None:
        for item in source:
            to_work.put(item)
        to_work.finish()

    def write() -> None:
        for item in to_sink:
            sink(item)
            del item  # what has been written need not wait in memory for what comes next

    def guarded(stage: Callable[[], None], ended: threading.Event) -> None:
        try:
            stage()
        except Stopped:
            pass
        except BaseException as error:
            errors.append(error)
            to_work.stop()
            to_sink.stop()
        finally:
            ended.set()

    stages = [(stage, threading.Event()) for stage in (read, write)]
    threads = [threading.Thread(target=guarded, args=each, name=each[0].__name__) for each in stages]
    try:
        for thread in threads:
            thread.start()
        for item in to_work:
            for result in work(item):
                to_sink.put(result)
                del result
            del item
        to_sink.finish()
        for _, ended in stages:
            ended.wait()
    except Stopped:
        pass
    except BaseException:
        to_work.stop()
        to_sink.stop()
        raise
    finally:
        for thread, (_, ended) in zip(threads, stages, strict=True):
            if thread.ident is not None:  # an interrupt may come before it is started
                _outlast(ended)
                thread.join()
    if errors:
        raise errors[0]


def _outlast(ended: threading.Event) -> None:
    """Wait, through interrupts: a `join` that is interrupted takes the thread for ended (before Python 3.13)."""
    while not ended.is_set():
        with suppress(KeyboardInterrupt):
            ended.wait()


class Stopped(Exception):
    """The other end of a channel has gone."""


class Channel(Generic[T]):
    """A queue of at most `most` items from one thread to another, which either may stop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._finished = self._stopped = False

    def put(self, item: T) -> None:
        """Wait for room and add an item; raises `Stopped`."""
        with self._changed:
            self._wait(lambda: len(self._items) < self._most)
            self._items.append(item)
            self._changed.notify_all()

    def finish(self) -> None:
        """Say that there will be no more items."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def stop(self) -> None:
        """End both threads: whatever they do with the channel raises `Stopped`."""
        with self._changed:
            self._stopped = True
            self._items.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        """The items as they come, until the other thread has finished; raises `Stopped`."""
        while True:
            with self._changed:
                self._wait(lambda: self._items or self._finished)
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
            del item

    def _wait(self, ready: Callable[[], object]) -> None:
        self._changed.wait_for(lambda: self._stopped or ready())
        if self._stopped:
            raise Stopped
