"""Processes of a run: which one this is, which directions it trains, and how values travel between all of them.

`torchrun` starts several processes, whose numbers are their ranks. Without it there is one, and nothing is sent.
"""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from elmoc.errors import describe_error
from pretrain.config import TrainConfig
from pretrain.distributed.direction_group import DirectionGroup, direction_ranks
from pretrain.distributed.errors import RaisedTogether, collective_errors, exit_with

# longer than rank 0 evaluates or saves while the others wait; a process that dies is noticed at once
TIMEOUT = timedelta(minutes=30)

Value = TypeVar("Value")


@dataclass
class Processes:
    """This process and the others of its run; by default it is the only one.

    Every process calls the methods that exchange values, in the same order.

    rank, world_size: among all processes.
    local_rank: among those of its machine, which is also the number of its GPU.
    ranks: those that train each direction, once directions are assigned.
    groups: of the directions that this process trains.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    ranks: dict[str, range] = field(default_factory=dict)
    groups: dict[str, DirectionGroup] = field(default_factory=dict)
    _asked: tuple[torch.Tensor, dist.Work] | None = None  # the question of `agree` that is on its way

    @property
    def is_rank0(self) -> bool:
        """Whether this is the process that evaluates, writes and prints."""
        return self.rank == 0

    def assign_directions(self, config: TrainConfig) -> None:
        """Decide which processes train which direction; raises an `InputError` when their number does not fit."""
        self.ranks = direction_ranks(config, self.world_size)
        self.groups = {
            direction: DirectionGroup(rank=self.rank - ranks.start, world_size=len(ranks), leader=ranks.start)
            for direction, ranks in self.ranks.items()
            if self.rank in ranks
        }

    def connect_groups(self, device: torch.device) -> None:
        """Connect the processes of each direction; every process calls this, once directions are assigned."""
        for direction, ranks in self.ranks.items():
            if len(ranks) == 1:
                continue
            with collective_errors():
                cpu_group = device_group = dist.new_group(list(ranks), timeout=TIMEOUT, backend="gloo")
                if device.type == "cuda":
                    device_group = dist.new_group(list(ranks), timeout=TIMEOUT, backend="nccl")
            if direction in self.groups:
                self.groups[direction].device_group, self.groups[direction].cpu_group = device_group, cpu_group

    def stream_slice(self, streams: int) -> slice:
        """Which of the `streams` of a direction this process reads; it is the same for all its directions."""
        return next(iter(self.groups.values())).stream_slice(streams)

    def broadcast_from_rank0(self, value: Value) -> Value:
        """Rank 0's value of tensors and plain values, in every process."""
        if self.world_size == 1:
            return value
        values = [value]
        with collective_errors():
            dist.broadcast_object_list(values, src=0)
        return values[0]

    def broadcast_from_leaders(self, values: Mapping[str, Sequence[float]], length: int) -> dict[str, Sequence[float]]:
        """For every direction the `length` numbers of its leader; `values` has those of this process's directions."""
        if self.groups.keys() == self.ranks.keys():  # every process has them all
            return dict(values)
        numbers: dict[str, Sequence[float]] = {}
        for direction, ranks in self.ranks.items():
            own = torch.tensor(values.get(direction, [0.0] * length), dtype=torch.float64)
            with collective_errors():
                dist.broadcast(own, src=ranks.start)
            numbers[direction] = own.tolist()
        return numbers

    def broadcast_weights(self, *modules: nn.Module) -> None:
        """Give every process rank 0's weights, on the CPU: another machine may draw slightly different ones."""
        if self.world_size > 1:
            for module in modules:
                for tensor in module.state_dict().values():
                    with collective_errors():
                        dist.broadcast(tensor, src=0)

    def send_to_rank0(self, value: Any, *, source: int) -> Any:
        """Tensors and plain values of another process in rank 0, on the CPU; in the others `value` comes back."""
        if self.rank == source:
            written = io.BytesIO()
            torch.save(value, written)
            with collective_errors():
                dist.send(torch.tensor([len(written.getbuffer())]), dst=0)
                dist.send(torch.frombuffer(written.getbuffer(), dtype=torch.uint8), dst=0)
        elif self.is_rank0:
            size = torch.empty(1, dtype=torch.int64)
            with collective_errors():
                dist.recv(size, src=source)
                packed = torch.empty(int(size), dtype=torch.uint8)
                dist.recv(packed, src=source)
            return torch.load(io.BytesIO(packed.numpy().data), map_location="cpu", weights_only=True)
        return value

    def all_gather(self, value: Value) -> list[Value]:
        """The plain value of every process, by rank."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        with collective_errors():
            dist.all_gather_object(values, value)
        return values

    def agree(self, asked: bool, seconds: float) -> tuple[bool, float]:
        """Whether any process was asked to stop, and the seconds by the clock that is ahead, the same everywhere.

        With several processes these are the values of when this was last called (nothing, at first): so the message
        travels behind an update.
        """
        if self.world_size == 1:
            return asked, seconds
        before, values = self._asked, torch.tensor([asked, seconds], dtype=torch.float64)
        with collective_errors():
            self._asked = values, dist.all_reduce(values, dist.ReduceOp.MAX, async_op=True)
            if before is None:
                self._asked[1].wait()
                return False, float(values[1])
            before[1].wait()
        return bool(before[0][0]), float(before[0][1])

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Raise an error of the block in any process in all of them (the block exchanges nothing)."""
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

    def require_equal_settings(self, values: dict[str, Any]) -> None:
        """Raise an `InputError` in every process unless all of them have the same values."""
        everywhere = self.all_gather(values)
        for rank, others in enumerate(everywhere):
            keys = everywhere[0].keys() | others.keys()
            if differing := [key for key in sorted(keys) if everywhere[0].get(key) != others.get(key)]:
                raise RaisedTogether(f"rank {rank} has other values than rank 0 for {', '.join(differing)}")


@contextmanager
def connect() -> Iterator[Processes]:
    """The processes of this run, as `torchrun` describes them in the environment; connected while the block lasts.

    Only rank 0 has a standard output, and an error of another one names its rank.
    """
    rank, world_size, local_rank = (
        int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    processes = Processes(rank=rank, world_size=world_size, local_rank=local_rank)
    if world_size == 1:
        yield processes
        return
    try:
        with redirect_stdout(None) if rank else nullcontext():
            with collective_errors():
                dist.init_process_group("gloo", timeout=TIMEOUT)
            yield processes
            with collective_errors():
                dist.barrier()
    except BaseException as error:
        exit_with(error, rank)
    dist.destroy_process_group()
