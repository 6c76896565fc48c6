"""Stop signals: a run that is interrupted or terminated is asked to stop, so that it saves first."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopRequest:
    """Whether an interrupt or a termination signal has come."""

    asked: bool = False


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """While the block runs, the first SIGINT or SIGTERM only sets `asked`; a second one has its usual effect."""
    stop = StopRequest()
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def ask(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        restore()

    for number in usual:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        restore()
