"""How is a run asked to stop, so that it saves first?"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """True once an interrupt or a termination signal has come."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """While the block runs, the first SIGINT or SIGTERM only sets the flag; a second one has its usual effect."""
    stop = Stop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def ask(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)

    for number in numbers:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
