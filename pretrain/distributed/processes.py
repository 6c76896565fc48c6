"""Processes of a run: which one this is, which directions it trains, and how values
travel between all of them.

Those that train one direction are a `DirectionGroup`, which sums their losses and
gradients. `torchrun` starts several processes, whose numbers are their ranks. Without
it there is one, and nothing is sent.
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
from torch import Tensor, nn

from elmoc.errors import InputError, describe_error
from pretrain.config import TrainConfig
from pretrain.distributed.errors import RaisedTogether, collective_errors, exit_with

# longer than rank 0 evaluates or saves while the others wait; a process that dies is
# noticed at once
TIMEOUT = timedelta(minutes=30)
# gradients of fewer numbers than this are reduced together, in one message
SMALL = 1 << 14

Value = TypeVar("Value")


def direction_ranks(config: TrainConfig, world_size: int) -> dict[str, range]:
    """The ranks that train each direction; an `InputError` when the work cannot be
    divided among the processes.
    """
    halves = config.parallel == "directions" and world_size > 1
    if halves and (world_size % 2 or len(config.directions) < 2):
        raise InputError(
            'train.parallel="directions" needs an even number of processes and both directions in '
            f"train.directions, not {world_size} and {', '.join(config.directions)}"
        )
    if world_size > 1 and config.device.startswith("cuda:"):
        raise InputError(
            f"train.device={config.device} is one GPU for {world_size} processes: use cuda or auto"
        )
    each = world_size // 2 if halves else world_size
    if config.streams % each:
        raise InputError(
            f"train.streams={config.streams} cannot be divided among {each} processes: use a multiple of {each}"
        )
    return {
        direction: range(index * each, (index + 1) * each) if halves else range(each)
        for index, direction in enumerate(config.directions)
    }


@dataclass
class DirectionGroup:
    """The processes that train one direction, each with an equal share of the streams;
    by default there is one.

    rank: the number of this process among the `world_size` processes of the group.
    leader: the rank among all processes of the first one of the group.
    device_group, cpu_group: for tensors on the device (losses, gradients) and in main
    memory; None of one process.
    """

    rank: int = 0
    world_size: int = 1
    leader: int = 0
    device_group: dist.ProcessGroup | None = None
    cpu_group: dist.ProcessGroup | None = None
    _gradients: "GradientReducer | None" = None

    def stream_slice(self, streams: int) -> slice:
        """Which of a direction's `streams` this process reads."""
        each = streams // self.world_size
        return slice(self.rank * each, (self.rank + 1) * each)

    def all_reduce(self, *values: Tensor) -> list[Tensor]:
        """Scalars, each summed over the processes (in float64); the given ones stay as
        they are.
        """
        if self.device_group is None:
            return list(values)
        together = torch.stack([value.double() for value in values])
        with collective_errors():
            dist.all_reduce(together, group=self.device_group)
        return [
            total.to(value.dtype) for total, value in zip(together, values, strict=True)
        ]

    def all_reduce_gradients(self, parameters: Sequence[Tensor]) -> None:
        """From now on, sum the gradients of the direction's parameters in every
        backward pass.
        """
        if self.device_group is not None:
            self._gradients = GradientReducer(parameters, self.device_group)

    def wait_for_gradients(self) -> None:
        """Wait until the gradients of a backward pass are summed."""
        if self._gradients is not None:
            self._gradients.wait()

    def all_reduce_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Sum tensors, of the same shapes everywhere, over the processes."""
        if self.device_group is not None:
            with collective_errors():
                for tensor in tensors:
                    dist.all_reduce(tensor, group=self.device_group)

    def gather(self, rows: Tensor) -> Tensor | None:
        """Rows [B / world_size, …] of every process as [B, …] on the CPU, in the leader
        alone.
        """
        rows = rows.cpu()
        if self.cpu_group is None:
            return rows
        received = (
            [torch.empty_like(rows) for _ in range(self.world_size)]
            if self.rank == 0
            else None
        )
        with collective_errors():
            dist.gather(rows, received, dst=self.leader, group=self.cpu_group)
        return None if received is None else torch.cat(received)


class GradientReducer:
    """Sums gradients over the processes of a group while the backward pass runs.

    A large one is sent as soon as it is whole, behind the rest of the pass; the small
    ones together, at its end. Every process computes the same graph, so that gradients
    become ready in the same order everywhere.
    """

    def __init__(self, parameters: Sequence[Tensor], group: dist.ProcessGroup) -> None:
        self._group = group
        self._small = [
            parameter for parameter in parameters if parameter.numel() < SMALL
        ]
        self._sent: list[dist.Work] = []
        for parameter in parameters:
            if parameter.numel() >= SMALL:
                parameter.register_post_accumulate_grad_hook(self._send)

    def _send(self, parameter: Tensor) -> None:
        assert parameter.grad is not None
        with collective_errors():
            self._sent.append(
                dist.all_reduce(parameter.grad, group=self._group, async_op=True)
            )

    def wait(self) -> None:
        """Send the small gradients, and wait for all."""
        gradients = [
            parameter.grad for parameter in self._small if parameter.grad is not None
        ]
        together = (
            torch.cat([gradient.flatten() for gradient in gradients])
            if gradients
            else None
        )
        with collective_errors():
            if together is not None:
                dist.all_reduce(together, group=self._group)
            for work in self._sent:
                work.wait()
        self._sent.clear()
        if together is not None:
            totals = together.split([each.numel() for each in gradients])
            for gradient, total in zip(gradients, totals, strict=True):
                gradient.copy_(total.view_as(gradient))


@dataclass
class Processes:
    """This process and the others of its run; by default it is the only one.

    Every process calls the methods that exchange values, in the same order.

    rank, world_size: among all processes.
    local_rank: among the processes of its machine; also the number of its GPU.
    ranks: those that train each direction, once directions are assigned.
    groups: of the directions that this process trains.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    ranks: dict[str, range] = field(default_factory=dict)
    groups: dict[str, DirectionGroup] = field(default_factory=dict)
    _asked: tuple[torch.Tensor, dist.Work] | None = (
        None  # the question of `agree` that is on its way
    )

    @property
    def is_rank0(self) -> bool:
        """Whether this is the process that evaluates, writes and prints."""
        return self.rank == 0

    def assign_directions(self, config: TrainConfig) -> None:
        """Decide which processes train which direction; raises an `InputError` when
        their number does not fit.
        """
        self.ranks = direction_ranks(config, self.world_size)
        self.groups = {
            direction: DirectionGroup(
                rank=self.rank - ranks.start, world_size=len(ranks), leader=ranks.start
            )
            for direction, ranks in self.ranks.items()
            if self.rank in ranks
        }

    def connect_groups(self, device: torch.device) -> None:
        """Connect the processes of each direction; every process calls this, once
        directions are assigned.
        """
        for direction, ranks in self.ranks.items():
            if len(ranks) == 1:
                continue
            with collective_errors():
                cpu_group = device_group = dist.new_group(
                    list(ranks), timeout=TIMEOUT, backend="gloo"
                )
                if device.type == "cuda":
                    device_group = dist.new_group(
                        list(ranks), timeout=TIMEOUT, backend="nccl"
                    )
            if direction in self.groups:
                self.groups[direction].device_group = device_group
                self.groups[direction].cpu_group = cpu_group

    def stream_slice(self, streams: int) -> slice:
        """Which of the `streams` of a direction this process reads; it is the same for
        all its directions.
        """
        return next(iter(self.groups.values())).stream_slice(streams)

    def broadcast_from_rank0(self, value: Value) -> Value:
        """Rank 0's value of tensors and plain values, in every process."""
        if self.world_size == 1:
            return value
        values = [value]
        with collective_errors():
            dist.broadcast_object_list(values, src=0)
        return values[0]

    def broadcast_from_leaders(
        self, values: Mapping[str, Sequence[float]], length: int
    ) -> dict[str, Sequence[float]]:
        """For every direction the `length` numbers of its leader; `values` has this
        process's directions.
        """
        if self.groups.keys() == self.ranks.keys():  # every process has them all
            return dict(values)
        numbers: dict[str, Sequence[float]] = {}
        for direction, ranks in self.ranks.items():
            own = torch.tensor(
                values.get(direction, [0.0] * length), dtype=torch.float64
            )
            with collective_errors():
                dist.broadcast(own, src=ranks.start)
            numbers[direction] = own.tolist()
        return numbers

    def broadcast_weights(self, *modules: nn.Module) -> None:
        """Give every process rank 0's weights, on the CPU: another machine may draw
        slightly different ones.
        """
        if self.world_size > 1:
            for module in modules:
                for tensor in module.state_dict().values():
                    with collective_errors():
                        dist.broadcast(tensor, src=0)

    def send_to_rank0(self, value: Any, *, source: int) -> Any:
        """Tensors and plain values of another process in rank 0, on the CPU; in the
        others `value` comes back.
        """
        if self.rank == source:
            written = io.BytesIO()
            torch.save(value, written)
            with collective_errors():
                dist.send(torch.tensor([len(written.getbuffer())]), dst=0)
                dist.send(
                    torch.frombuffer(written.getbuffer(), dtype=torch.uint8), dst=0
                )
        elif self.is_rank0:
            size = torch.empty(1, dtype=torch.int64)
            with collective_errors():
                dist.recv(size, src=source)
                packed = torch.empty(int(size), dtype=torch.uint8)
                dist.recv(packed, src=source)
            return torch.load(
                io.BytesIO(packed.numpy().data), map_location="cpu", weights_only=True
            )
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
        """Whether any process was asked to stop, and the seconds by the clock that is
        ahead, the same everywhere.

        With several processes these are the values of when this was last called
        (nothing, at first): so the message travels behind an update.
        """
        if self.world_size == 1:
            return asked, seconds
        before = self._asked
        values = torch.tensor([asked, seconds], dtype=torch.float64)
        with collective_errors():
            self._asked = (
                values,
                dist.all_reduce(values, dist.ReduceOp.MAX, async_op=True),
            )
            if before is None:
                self._asked[1].wait()
                return False, float(values[1])
            before[1].wait()
        return bool(before[0][0]), float(before[0][1])

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

    def require_equal_settings(self, values: dict[str, Any]) -> None:
        """Raise an `InputError` in every process unless all of them have the same
        values.
        """
        everywhere = self.all_gather(values)
        for rank, others in enumerate(everywhere):
            keys = everywhere[0].keys() | others.keys()
            if differing := [
                key for key in sorted(keys) if everywhere[0].get(key) != others.get(key)
            ]:
                raise RaisedTogether(
                    f"rank {rank} has other values than rank 0 for {', '.join(differing)}"
                )


@contextmanager
def connect() -> Iterator[Processes]:
    """The processes of this run, as `torchrun` describes them in the environment;
    connected while the block lasts.

    Only rank 0 has a standard output, and an error of another one names its rank.
    """
    rank, world_size, local_rank = (
        int(os.environ.get(name, default))
        for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
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
