"""Peer watch: the thread by which a busy process learns that another one is lost."""

import os
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta

import torch
import torch.distributed as dist

from pretrain.distributed.errors import ProcessLost

GRACE = 10.0
"""Seconds in which the main thread may notice a loss by itself; `torchrun` kills after 30."""
ENDED, LOST = 0, 1


class PeerWatch:
    """Ends this process when another one is lost and the main thread is too busy to notice (on a GPU, say).

    The processes form a ring, and a thread of each waits for a message of the rank before. There is one at the end of
    the run; a connection that breaks instead means a loss, which is passed on around the ring.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        self._rank = rank
        self._before, self._after = (rank - 1) % world_size, (rank + 1) % world_size
        self._group = dist.new_group(backend="gloo", timeout=timedelta(days=3650))
        self._ending = False
        self._thread = threading.Thread(target=self._wait, name="peer-watch", daemon=True)
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
        """Stop watching; to be called when no process has anything left to do."""
        self._ending = True
        with suppress(RuntimeError):  # the next process has ended already
            dist.send(torch.tensor([ENDED]), self._after, self._group)
        self._thread.join()
