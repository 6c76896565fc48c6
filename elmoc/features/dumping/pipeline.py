"""Pipeline: three stages, each in a thread of its own, with short queues between them."""

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
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

    def stop() -> None:
        to_work.stop()
        to_sink.stop()

    def guarded(stage: Callable[[], None]) -> None:
        try:
            stage()
        except Stopped:
            pass
        except BaseException as error:
            errors.append(error)
            stop()

    threads = [threading.Thread(target=guarded, args=(stage,), name=stage.__name__) for stage in (read, write)]
    with Interrupts(stop) as interrupts:
        try:
            for thread in threads:
                thread.start()
            for item in to_work:
                for result in interrupts.made(work(item)):
                    to_sink.put(result)
                    del result
                del item
            to_sink.finish()
        except Stopped:
            pass
        except BaseException:
            stop()
            raise
        finally:
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
    if errors:
        raise errors[0]


class Interrupts:
    """What an interrupt does while the block of `with` runs: it is raised at once in `made`, and else calls `stop`.

    Elsewhere it could leave a lock taken, and a `join` that is interrupted takes the thread for ended (before Python
    3.13). After the block it is raised at last. Signals that raise no `KeyboardInterrupt` are left as they are.

    Args:
        stop: called in the main thread between any two steps of it.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._at_once = self._came = False
        self._numbers: list[signal.Signals] = []

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():  # which gets them
            both = (signal.SIGINT, signal.SIGTERM)
            self._numbers = [each for each in both if signal.getsignal(each) is signal.default_int_handler]
        for number in self._numbers:
            signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number in self._numbers:
            signal.signal(number, signal.default_int_handler)
        if self._came and kind is None:
            raise KeyboardInterrupt

    def made(self, results: Iterable[T]) -> Iterator[T]:
        """The results; while one is made, the first interrupt is raised at once."""
        iterator = iter(results)
        while True:
            self._at_once = not self._came
            try:
                result = next(iterator)
            except StopIteration:
                return
            finally:
                self._at_once = False
            yield result
            del result

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        if self._at_once:
            self._at_once = False
            raise KeyboardInterrupt
        self._stop()


class Stopped(Exception):
    """The other end of a channel has gone."""


class Channel(Generic[T]):
    """A queue of at most `most` items from one thread to another, which either may stop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: deque[T] = deque()
        self._changed = threading.Condition()  # of a lock that one thread can take again, as an interrupt's `stop` does
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
