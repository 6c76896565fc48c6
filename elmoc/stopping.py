"""Stopping: how a process is asked to stop by a signal."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal, whose number is the argument, asked this process to stop."""


def raise_stopped(number: int, frame: object) -> None:
    """Raise `Stopped`; SIGTERM and SIGHUP that come later are ignored: they must not
    break off what tidies up.
    """
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)


@contextmanager
def handled_signals(
    handler: Callable[[int, object], None] = raise_stopped,
    numbers: Sequence[int] = _ENDING,
) -> Iterator[None]:
    """Let signals call a function while the block runs. By default SIGTERM and SIGHUP
    raise `Stopped`, as Ctrl-C raises `KeyboardInterrupt`.

    But for Ctrl-C, a signal that is ignored (by `nohup`) stays so. Other threads than
    the main one get no signals: there the block just runs.
    """
    is_main = threading.current_thread() is threading.main_thread()
    usual = {number: signal.getsignal(number) for number in numbers if is_main}
    for number, before in usual.items():
        if number == signal.SIGINT or before != signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in usual.items():
            # None is a handler that another library has set.
            signal.signal(number, before or signal.SIG_DFL)


@contextmanager
def noted_signals() -> Iterator[list[int]]:
    """Yield a list to which SIGINT, SIGTERM and SIGHUP are appended while the block
    runs, which is to save and end then.
    """
    noted: list[int] = []

    def note(number: int, frame: object) -> None:
        noted.append(number)
        # `timeout` sends a signal twice, a terminal that is closed any number of times:
        # who asks a third time does not want to wait.
        if number != signal.SIGHUP and noted.count(number) > 2:
            raise Stopped(number)

    with handled_signals(note, (signal.SIGINT, *_ENDING)):
        yield noted
