"""Errors of several processes: how the loss of one shows in the others, and how each
ends with one sentence.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import torch.distributed as dist

from elmoc.errors import InputError, describe_error, ran_out_of_memory


class ProcessLost(InputError):
    """Another process of the run was killed, lost, or ended by an error of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"another process of this run ended or was lost ({reason}): "
            "go on by --resume"
        )


class RaisedTogether(InputError):
    """An error that every process raises, and rank 0 prints."""


@contextmanager
def collective_errors() -> Iterator[None]:
    """Turn the failure of a collective call (the block does nothing else) into
    `ProcessLost`.

    What fails in this process alone, its memory or its GPU, is raised as it is.
    """
    try:
        yield
    except RuntimeError as error:
        if ran_out_of_memory(error) or "CUDA error" in str(error):
            raise
        raise ProcessLost(str(error).split("\n")[0]) from error


def exit_with(error: BaseException, rank: int) -> NoReturn:
    """Print an error and end this process at once: its other threads wait for processes
    that may never answer.

    An error that all processes raise is printed by rank 0; an error of one process
    names its rank.
    """
    # of output that nobody reads any more, and of the barrier
    with suppress(OSError, RuntimeError):
        if isinstance(error, RaisedTogether) and rank:
            # rank 0 never enters it: it has printed the error when this breaks off
            dist.barrier()
        elif isinstance(error, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
        else:
            if os.environ.get("ELMOC_TRACEBACK"):
                traceback.print_exception(error)
            where = f"rank {rank}: " if rank else ""
            print(f"error: {where}{describe_error(error)}", file=sys.stderr)
        sys.stdout.flush()
    # other threads, which wait for messages, would keep Python from ending
    os._exit(130 if isinstance(error, KeyboardInterrupt) else 1)
