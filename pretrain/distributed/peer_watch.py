"""How does a process learn that another one of its run is gone, and what does it say then?"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist

from elmoc.errors import InputError

GRACE = 10.0
"""Seconds in which the main thread may notice a loss by itself; `torchrun` kills after 30."""
ENDED, LOST = 0, 1


class ProcessLost(InputError):
    """Another process of the run was killed, lost, or ended by an error of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"another process of this run ended or was lost ({reason}): unless it says what is wrong, go on from the "
            "last checkpoint by the same command with --resume"
        )


@contextmanager
def collective_errors() -> Iterator[None]:
    """Turn the failure of what processes do together (the block does nothing else) into `ProcessLost`."""
    try:
        yield
    except RuntimeError as error:
        # such as "[/pytorch/…/pair.cc:553] Connection closed by peer [127.0.0.1]:16780. This is typically …"
        reason = str(error).split("\n")[0].split("] ", 1)[-1].split(". ")[0]
        raise ProcessLost(reason) from error


class PeerWatch:
    """Ends this process when another one is lost and the main thread is too busy to notice (on a GPU, say).

    A thread waits for a message of the process before this one. There is one at the end of the run; a connection that
    breaks instead means a loss, which is passed on around the ring.
    """

    def __init__(self, rank: int, size: int) -> None:
        self._rank = rank
        self._before, self._after = (rank - 1) % size, (rank + 1) % size
        self._group = dist.new_group(backend="gloo", timeout=timedelta(days=3650))
        self._ending = False
        self._thread = threading.Thread(target=self._wait, name="watch", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        message = torch.tensor([LOST])
        with suppress(RuntimeError):
            dist.recv(message, self._before, self._group)
        if self._ending or message.item() == ENDED:
            return
        with suppress(RuntimeError):
            dist.send(message, self._after, self._group)
        time.sleep(GRACE)
        print(f"error: rank {self._rank}: {ProcessLost('while this one was busy')}", file=sys.stderr, flush=True)
        os._exit(1)

    def end(self) -> None:
        """The run has come to its end; to be called when no process has anything left to do."""
        self._ending = True
        with suppress(RuntimeError):  # it has ended already
            dist.send(torch.tensor([ENDED]), self._after, self._group)
        self._thread.join()
