"""Stop signals: a run that is interrupted or terminated, or whose terminal is closed,
is asked to stop, and saves.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """While the block runs, the first SIGINT or SIGTERM only sets the event; a second
    one has its usual effect.

    So does each SIGHUP (a terminal that is closed may send several), unless it is
    ignored (`nohup`). Other threads than the main one get no signals, and set none.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    usual = {number: signal.getsignal(number) for number in numbers}
    if usual[signal.SIGHUP] == signal.SIG_IGN:
        del usual[signal.SIGHUP]

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()
        # A user who asks twice does not want to wait for the checkpoint.
        for other in (signal.SIGINT, signal.SIGTERM):
            signal.signal(other, usual[other])

    for number in usual:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
