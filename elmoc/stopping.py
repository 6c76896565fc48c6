"""Stopping: how a process is asked to stop by a signal, and what its exit status is."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

# Seconds in which a signal that comes again is the same request: `timeout` sends two, a
# terminal that is closed several.
_SAME_REQUEST_SECONDS = 1.0


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop.

    number: of the signal.
    """

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        is_ctrl_c = number == signal.SIGINT
        super().__init__("interrupted" if is_ctrl_c else f"stopped by {name}")
        self.number = number


def exit_status(error: KeyboardInterrupt) -> int:
    """The status with which a process ends that was asked to stop: 128 and the number
    of the signal.
    """
    number: int = getattr(error, "number", signal.SIGINT)
    return 128 + number


@contextmanager
def raised_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `Stopped` while the block runs, as Ctrl-C raises
    `KeyboardInterrupt`.

    The first of them is raised; others must not break off what tidies up.
    """

    def stop(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    with _handled(stop, numbers):
        yield


class StopRequest:
    """Whether a signal has asked to stop.

    number: of the signal that came first; 0 before it came.
    """

    number = 0

    def __init__(self) -> None:
        self._since = 0.0

    def ask(self, number: int, frame: object = None) -> None:
        """Take note of a signal. A second SIGINT or SIGTERM raises `Stopped`: a user
        who asks twice does not want to wait.
        """
        if not self.number:
            self.number = number
            self._since = time.monotonic()
        is_later = time.monotonic() - self._since > _SAME_REQUEST_SECONDS
        if is_later and number != signal.SIGHUP:
            raise Stopped(number)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Take note of SIGINT, SIGTERM and SIGHUP while the block runs, which is to save
    and end then.
    """
    request = StopRequest()
    with _handled(request.ask, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
        yield request


@contextmanager
def _handled(
    handler: Callable[[int, object], None], numbers: Sequence[int]
) -> Iterator[None]:
    """Let signals call a function while the block runs; but for Ctrl-C, one that is
    ignored (by `nohup`) stays so.

    Other threads than the main one get no signals, and can set no handler.
    """
    usual = {}
    if threading.current_thread() is threading.main_thread():
        usual = {number: signal.getsignal(number) for number in numbers}
    for number, before in usual.items():
        if number == signal.SIGINT or before != signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in usual.items():
            # None is a handler that another library has set.
            signal.signal(number, before or signal.SIG_DFL)
