"""Processes of a run: which one this is, which directions it trains, and how values travel between all of them.

`torchrun` starts several processes, whose numbers are their ranks. Without it there is one, and nothing is sent.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from elmoc.errors import describe_error
from pretrain.config import TrainConfig
from pretrain.distributed.direction_group import DirectionGroup, direction_ranks
from pretrain.distributed.errors import RaisedTogether, collective_errors

TIMEOUT = timedelta(minutes=30)
"""Longer than rank 0 evaluates or saves while the others wait. A process that dies is noticed at once."""

Value = TypeVar("Value")


@dataclass
class Processes:
    """This process and the others of its run; by default it is the only one.

    Every process calls the methods that exchange values, in the same order.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    """Its number among those of its machine, which is also that of its GPU."""
    local_world_size: int = 1
    """How many there are on its machine."""
    launch: str | None = None
    """What names the launch by `torchrun`, which may start the processes several times."""
    restarted: bool = False
    """Whether it has done so."""
    ranks: dict[str, range] = field(default_factory=dict)
    """The ranks that train each direction, once directions are assigned."""
    groups: dict[str, DirectionGroup] = field(default_factory=dict)
    """Those of the directions that this process trains."""
    _asked: tuple[torch.Tensor, dist.Work] | None = None
    """The question of `any_at_last_step` that is on its way."""

    @property
    def is_rank0(self) -> bool:
        """Whether this is the process that evaluates, writes and prints."""
        return self.rank == 0

    @property
    def is_beside_rank0(self) -> bool:
        """Whether rank 0 is this process, or another one of its machine; `torchrun` numbers those of one in a row."""
        return self.rank == self.local_rank

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions that this process trains."""
        return tuple(self.groups)

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
                self.groups[direction].connect(device_group=device_group, cpu_group=cpu_group)

    def stream_slice(self, streams: int) -> slice:
        """Which of the `streams` of a direction this process reads; it is the same for all its directions."""
        return next(iter(self.groups.values())).stream_slice(streams)

    def broadcast_from_rank0(self, value: Value) -> Value:
        """Rank 0's value of tensors and plain values, in every process."""
        if self.world_size == 1:
            return value
        packed = pack(value)
        size = torch.tensor([len(packed)])
        with collective_errors():
            dist.broadcast(size, src=0)
            if not self.is_rank0:
                packed = torch.empty(int(size), dtype=torch.uint8)
            dist.broadcast(packed, src=0)
        return value if self.is_rank0 else unpack(packed)

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
            packed = pack(value)
            with collective_errors():
                dist.send(torch.tensor([len(packed)]), dst=0)
                dist.send(packed, dst=0)
        elif self.is_rank0:
            size = torch.empty(1, dtype=torch.int64)
            with collective_errors():
                dist.recv(size, src=source)
                packed = torch.empty(int(size), dtype=torch.uint8)
                dist.recv(packed, src=source)
            return unpack(packed)
        return value

    def all_gather(self, value: Value) -> list[Value]:
        """The plain value of every process, by rank."""
        if self.world_size == 1:
            return [value]
        packed = pack(value)
        sizes = [torch.empty(1, dtype=torch.int64) for _ in range(self.world_size)]
        with collective_errors():
            dist.all_gather(sizes, torch.tensor([len(packed)]))
            longest = int(max(sizes))
            everywhere = [torch.empty(longest, dtype=torch.uint8) for _ in sizes]
            dist.all_gather(everywhere, torch.nn.functional.pad(packed, (0, longest - len(packed))))
        return [unpack(each[:size]) for each, size in zip(everywhere, sizes, strict=True)]

    def any_at_last_step(self, flag: bool) -> bool:
        """Whether the flag was set in any process: now where there is one process, else when this was last called.

        So the message travels behind an update, and the answer is the same everywhere.
        """
        if self.world_size == 1:
            return flag
        before, asked = self._asked, torch.tensor([flag], dtype=torch.int32)
        with collective_errors():
            self._asked = asked, dist.all_reduce(asked, dist.ReduceOp.MAX, async_op=True)
            if before is None:
                return False
            before[1].wait()
        return bool(before[0])

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
            keys = dict.fromkeys([*everywhere[0], *others])  # a setting that one kind of a section has may not be there
            differing = [
                key
                for key in keys
                if key not in everywhere[0] or key not in others or others[key] != everywhere[0][key]
            ]
            if differing:
                raise RaisedTogether(
                    f"rank {rank} has other values than rank 0 for {', '.join(differing)}: give all of them the same"
                )


def pack(value: Any) -> torch.Tensor:
    """uint8 [n]: tensors and plain values as bytes."""
    packed = io.BytesIO()
    torch.save(value, packed)
    return torch.frombuffer(packed.getbuffer(), dtype=torch.uint8)


def unpack(packed: torch.Tensor) -> Any:
    """What `pack` packed, on the CPU; nothing else is unpickled, whatever a process may have sent."""
    return torch.load(io.BytesIO(packed.numpy().data), map_location="cpu", weights_only=True)
