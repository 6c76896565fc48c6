"""Errors of several processes: how the loss of one shows in the others, and how each ends with one sentence."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

from elmoc.errors import InputError, describe_error, ran_out_of_memory

# seconds in which the main thread may notice a loss by itself; `torchrun` kills after 30
GRACE = 10.0
ENDED, LOST = 0, 1


class ProcessLost(InputError):
    """Another process of the run was killed, lost, or ended by an error of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"another process of this run ended or was lost ({reason}): go on by --resume")


class RaisedTogether(InputError):
    """An error that every process raises, and rank 0 prints."""


@contextmanager
def collective_errors() -> Iterator[None]:
    """Turn the failure of a collective call (the block does nothing else) into `ProcessLost`.

    What fails in this process alone, its memory or its GPU, is raised as it is.
    """
    try:
        yield
    except RuntimeError as error:
        if ran_out_of_memory(error) or "CUDA error" in str(error):
            raise
        raise ProcessLost(str(error).split("\n")[0]) from error


def exit_with(error: BaseException, rank: int) -> NoReturn:
    """Print an error and end this process at once: its other threads wait for processes that may never answer.

    An error that all processes raise is printed by rank 0; what is one process's own names its rank.
    """
    with suppress(OSError, RuntimeError):  # of output that nobody reads any more, and of the barrier
        if isinstance(error, RaisedTogether) and rank:
            dist.barrier()  # rank 0 never enters it: it has printed the error when this breaks off
        elif isinstance(error, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
        else:
            if os.environ.get("ELMOC_TRACEBACK"):
                traceback.print_exception(error)
            print(f"error: {f'rank {rank}: ' if rank else ''}{describe_error(error)}", file=sys.stderr)
        sys.stdout.flush()
    os._exit(130 if isinstance(error, KeyboardInterrupt) else 1)


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
