"""Processes of a run: which one this is, which streams it reads, how values travel
between all of them, and how each ends with one sentence.

`torchrun` starts several processes, whose numbers are their ranks. Each trains all
directions on an equal share of the streams. Without `torchrun` there is one process,
and nothing is sent.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from elmoc.errors import (
    RESUME,
    InputError,
    describe_error,
    ran_out_of_memory,
    run_command,
)
from elmoc.process import torchrun_numbers

# The others wait while rank 0 evaluates and saves, which takes less than this. A
# process that dies is noticed at once.
TIMEOUT = timedelta(minutes=30)

Value = TypeVar("Value")


class RaisedTogether(InputError):
    """An error that every process raises, and rank 0 prints."""


@contextmanager
def collective_errors() -> Iterator[None]:
    """Turn the failure of a collective call (nothing else goes on in it) into an
    `InputError`: another process was killed, lost, or ended by an error of its own.

    What fails in this process alone, its memory or its GPU, is raised as it is.
    """
    try:
        yield
    except RuntimeError as error:
        if ran_out_of_memory(error) or "CUDA error" in str(error):
            raise
        first_line = str(error).partition("\n")[0]
        raise InputError(
            f"another process of this run ended or was lost ({first_line}): go on by "
            "--resume"
        ) from error


class DirectionGroup:
    """Sums the values of one direction over all processes.

    Two directions of a process run at the same time, so each has a process group of its
    own, in which its messages keep their order.

    Args:
        group: the process group; None where there is one process.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self._sent: list[dist.Work] = []

    @collective_errors()
    def all_reduce(self, *values: Tensor) -> list[Tensor]:
        """Scalars, each summed over the processes (in float64); the given ones stay as
        they are.
        """
        if self._group is None:
            return list(values)
        together = torch.stack([value.double() for value in values])
        dist.all_reduce(together, group=self._group)
        return [
            total.to(value.dtype) for total, value in zip(together, values, strict=True)
        ]

    @collective_errors()
    def all_reduce_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Sum tensors, of the same shapes everywhere, over the processes."""
        if self._group is not None:
            for tensor in tensors:
                dist.all_reduce(tensor, group=self._group)

    def all_reduce_gradients(self, parameters: Sequence[Tensor]) -> None:
        """From now on, sum the gradients of parameters in every backward pass.

        Each is sent as soon as it is whole, behind the rest of the pass. Every process
        computes the same graph, so that gradients become ready in the same order
        everywhere.
        """
        # PyTorch's DistributedDataParallel sums the first update's gradients in other
        # buckets than later ones: resumed runs of three and four processes differed by
        # 4e-6 from runs that were never stopped. This way they end with the same bits.
        if self._group is not None:
            for parameter in parameters:
                parameter.register_post_accumulate_grad_hook(self._send_gradient)

    @collective_errors()
    def _send_gradient(self, parameter: Tensor) -> None:
        assert parameter.grad is not None
        self._sent.append(
            dist.all_reduce(parameter.grad, group=self._group, async_op=True)
        )

    @collective_errors()
    def wait_for_gradients(self) -> None:
        """Wait until the gradients of a backward pass are summed."""
        for work in self._sent:
            work.wait()
        self._sent.clear()


@dataclass(frozen=True)
class Processes:
    """This process and the others of its run; by default it is the only one.

    Every process calls the methods that exchange values, in the same order.

    rank, world_size: among all processes.
    local_rank: among the processes of its machine; also the number of its GPU.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @property
    def is_rank0(self) -> bool:
        """Whether this is the process that evaluates, writes and prints."""
        return self.rank == 0

    def require_divisible(self, *, streams: int, device: str) -> None:
        """Raise an `InputError` when the processes cannot share the streams, or would
        all use one GPU.
        """
        count = self.world_size
        kind, _, number = device.partition(":")
        if count > 1 and kind != "cpu" and number:
            raise InputError(
                f"train.device={device} is one GPU for {count} processes: use {kind} "
                "or auto"
            )
        if streams % count:
            raise InputError(
                f"train.streams={streams} cannot be divided among {count} processes: "
                f"use a multiple of {count}"
            )

    def stream_slice(self, streams: int) -> slice:
        """Which of the `streams` of a direction this process reads."""
        each = streams // self.world_size
        return slice(self.rank * each, (self.rank + 1) * each)

    @collective_errors()
    def new_groups(
        self, directions: Sequence[str], device: torch.device
    ) -> dict[str, DirectionGroup]:
        """A group of all processes for each direction, whose values are on a device."""
        if self.world_size == 1:
            return dict.fromkeys(directions, DirectionGroup())
        backend = dist.get_default_backend_for_device(device)
        return {
            direction: DirectionGroup(dist.new_group(timeout=TIMEOUT, backend=backend))
            for direction in directions
        }

    @collective_errors()
    def broadcast_from_rank0(self, value: Value) -> Value:
        """Rank 0's value of tensors and plain values, in every process."""
        if self.world_size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def gather(self, rows: Tensor) -> Tensor:
        """Rows [B / world_size, …] of every process as [B, …] on the CPU."""
        return torch.cat(self.all_gather(rows.cpu()))

    @collective_errors()
    def all_gather(self, value: Value) -> list[Value]:
        """The plain value of every process, by rank."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values

    @collective_errors()
    def agree(self, asked: int, seconds: float) -> tuple[int, float]:
        """The number of a signal that asked any process to stop, 0 without one, and the
        seconds by the clock that is ahead, the same everywhere.
        """
        if self.world_size == 1:
            return asked, seconds
        values = torch.tensor([asked, seconds], dtype=torch.float64)
        dist.all_reduce(values, dist.ReduceOp.MAX)
        return int(values[0]), float(values[1])

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Raise an error of the block in any process in all of them (the block
        exchanges nothing).
        """
        problem = None
        try:
            yield
        except Exception as error:
            if self.world_size == 1:
                raise
            problem = describe_error(error)
        for rank, each in enumerate(self.all_gather(problem)):
            if each is not None:
                raise RaisedTogether(f"rank {rank}: {each}" if rank else each)

    def require_equal_settings(self, values: Mapping[str, Any]) -> None:
        """Raise an `InputError` in every process unless all of them have the same
        values.
        """
        first, *others = self.all_gather(dict(values))
        for rank, other in enumerate(others, start=1):
            both = first | other
            differing = [key for key in both if first.get(key) != other.get(key)]
            if differing:
                raise RaisedTogether(
                    f"rank {rank} has other values than rank 0 for "
                    f"{', '.join(differing)}"
                )


@contextmanager
def connect() -> Iterator[Processes]:
    """The processes of this run, as `torchrun` describes them in the environment;
    connected while the block lasts.

    Only rank 0 has a standard output, and an error of another one names its rank.
    """
    processes = Processes(**torchrun_numbers())
    if processes.world_size == 1:
        yield processes
        return
    try:
        with nullcontext() if processes.is_rank0 else redirect_stdout(None):
            with collective_errors():
                dist.init_process_group("gloo", timeout=TIMEOUT)
            yield processes
            with collective_errors():
                dist.barrier()
    except BaseException as error:
        exit_with(error, processes.rank)
    dist.destroy_process_group()


def exit_with(error: BaseException, rank: int) -> NoReturn:
    """Print an error and end this process at once: its other threads wait for processes
    that may never answer.

    An error that all processes raise is printed by rank 0; an error of one process
    names its rank.
    """

    def raise_error() -> None:
        if rank and isinstance(error, Exception):
            raise InputError(f"rank {rank}: {describe_error(error)}") from error
        raise error

    if rank and isinstance(error, RaisedTogether):
        # rank 0 never enters it: it has printed the error when this breaks off
        with suppress(RuntimeError):
            dist.barrier()
        os._exit(1)
    # other threads, which wait for messages, would keep Python from ending
    os._exit(run_command(raise_error, go_on=RESUME))
