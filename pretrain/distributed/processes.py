"""Which process of a run is this, what is its part of the work, and how do all of them agree?

`torchrun` starts N processes, whose numbers are their ranks. Without it there is one, and nothing here does anything.
"""

import io
import os
import sys
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import nn

from elmoc.errors import InputError, describe_os_error
from pretrain.config import TrainConfig
from pretrain.distributed.direction_group import DirectionGroup
from pretrain.distributed.peer_watch import PeerWatch, collective_errors
from pretrain.distributed.rendezvous import rendezvous

TIMEOUT = timedelta(minutes=30)
"""Longer than the first process evaluates or saves while the others wait. One that dies is noticed at once."""

Value = TypeVar("Value")


class RaisedTogether(InputError):
    """An error that every process raises, and the first one prints."""


class Processes:
    """This process and the others of its run; by default it is the only one.

    Args:
        rank, world_size: this is process `rank` of `world_size`.
        local_rank: its number among those of its machine, which is also that of its GPU.
        launch: what names the launch by `torchrun`, which may start the processes several times.
        restarted: whether it has done so.
    """

    def __init__(
        self,
        *,
        rank: int = 0,
        world_size: int = 1,
        local_rank: int = 0,
        launch: str | None = None,
        restarted: bool = False,
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self.local_rank = local_rank
        self.launch = launch
        self.restarted = restarted
        self.ranks: dict[str, range] = {}
        """Who trains each direction, once the work is divided."""
        self.groups: dict[str, DirectionGroup] = {}
        """Those of the directions that this process trains."""
        self._asked: tuple[torch.Tensor, dist.Work] | None = None

    @property
    def is_rank0(self) -> bool:
        """Whether this is the process that evaluates, writes and talks."""
        return self.rank == 0

    @property
    def directions(self) -> tuple[str, ...]:
        """What this process trains."""
        return tuple(self.groups)

    def divide(self, config: TrainConfig) -> None:
        """Divide the work; raises an `InputError` when it cannot be divided by the number of processes."""
        halves = config.parallel == "directions" and self.world_size > 1
        if halves and (self.world_size % 2 or len(config.directions) < 2):
            raise InputError(
                'train.parallel="directions" needs an even number of processes and both directions in '
                f"train.directions, not {self.world_size} and {', '.join(config.directions)}"
            )
        if self.world_size > 1 and config.device.startswith("cuda:"):
            raise InputError(
                f"train.device={config.device} is one GPU for {self.world_size} processes: use cuda or auto"
            )
        parts = self.world_size // 2 if halves else self.world_size
        if config.streams % parts:
            raise InputError(
                f"train.streams={config.streams} cannot be divided among {parts} processes: use a multiple of {parts}"
            )
        self.ranks = {
            direction: range(index * parts, (index + 1) * parts) if halves else range(parts)
            for index, direction in enumerate(config.directions)
        }
        self.groups = {
            direction: DirectionGroup(part=self.rank - ranks.start, parts=parts, leader=ranks.start)
            for direction, ranks in self.ranks.items()
            if self.rank in ranks
        }

    def open_groups(self, device: torch.device) -> None:
        """Connect the processes of each direction; all of them call this, once the work is divided."""
        for direction, ranks in self.ranks.items():
            if len(ranks) == 1:
                continue
            with collective_errors():
                messages = sums = dist.new_group(list(ranks), timeout=TIMEOUT, backend="gloo")
                if device.type == "cuda":
                    sums = dist.new_group(list(ranks), timeout=TIMEOUT, backend="nccl")
            if direction in self.groups:
                self.groups[direction].connect(sums=sums, messages=messages)

    def own(self, streams: int) -> slice:
        """Which of the streams of a direction this process reads, whichever direction."""
        return next(iter(self.groups.values())).own(streams)

    def broadcast_from_rank0(self, value: Value) -> Value:
        """The first process's value, in every process."""
        return self._of(0, value)

    def broadcast_from_leaders(self, values: dict[str, Value]) -> dict[str, Value]:
        """For every direction the value of its leader; `values` has those of this process's directions."""
        if self.groups.keys() == self.ranks.keys():  # every process has them all
            return values
        return {direction: self._of(ranks.start, values.get(direction)) for direction, ranks in self.ranks.items()}

    def _of(self, rank: int, value: Any) -> Any:
        if self.world_size == 1:
            return value
        values = [value]
        with collective_errors():
            dist.broadcast_object_list(values, src=rank)
        return values[0]

    def send_to_rank0(self, sender: int, value: Any) -> Any:
        """Another process's tensors and plain values in the first one, on the CPU; elsewhere `value` comes back."""
        if self.rank == sender:
            packed = io.BytesIO()
            torch.save(value, packed)
            with collective_errors():
                dist.send_object_list([packed.getvalue()], dst=0)
        elif self.is_rank0:
            received: list[Any] = [None]
            with collective_errors():
                dist.recv_object_list(received, src=sender)
            return torch.load(io.BytesIO(received[0]), map_location="cpu", weights_only=True)
        return value

    def any_at_last_step(self, flag: bool) -> bool:
        """Whether the flag was set in any process: this time, or, of several processes, when this was last called.

        So the question travels behind an update, and the answer is the same everywhere.
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

    def broadcast_weights(self, *modules: nn.Module) -> None:
        """Give every process the first one's weights, on the CPU: another machine may draw them a little different."""
        if self.world_size > 1:
            for module in modules:
                for tensor in module.state_dict().values():
                    with collective_errors():
                        dist.broadcast(tensor, src=0)

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Raise an `InputError` of the block in any process in all of them (the block itself exchanges nothing)."""
        problem = None
        try:
            yield
        except (InputError, OSError) as error:
            if self.world_size == 1:
                raise
            problem = sentence(error)
        for rank, each in enumerate(self.all_gather(problem)):
            if each is not None:
                raise RaisedTogether(f"rank {rank}: {each}" if rank else each)

    def require_equal_settings(self, values: dict[str, Any]) -> None:
        """Raise an `InputError` in every process unless all of them have the same values."""
        everywhere = self.all_gather(values)
        for rank, others in enumerate(everywhere):
            differing = [key for key, value in everywhere[0].items() if others[key] != value]
            if differing:
                raise RaisedTogether(
                    f"rank {rank} has other values than rank 0 for {', '.join(differing)}: give all of them the same"
                )

    def all_gather(self, value: Value) -> list[Value]:
        """The value of every process, by rank."""
        if self.world_size == 1:
            return [value]
        values: list[Any] = [None] * self.world_size
        with collective_errors():
            dist.all_gather_object(values, value)
        return values


@contextmanager
def connected() -> Iterator[Processes]:
    """The processes of this run, found by what `torchrun` has put into the environment.

    Only the first one has a standard output, and an `InputError` of another one names its rank.
    """
    environment = os.environ
    rank, size = int(environment.get("RANK", "0")), int(environment.get("WORLD_SIZE", "1"))
    processes = Processes(
        rank=rank,
        world_size=size,
        local_rank=int(environment.get("LOCAL_RANK", "0")),
        launch=environment.get("TORCHELASTIC_RUN_ID"),
        restarted=int(environment.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0,
    )
    if size == 1:
        yield processes
        return
    try:
        with redirect_stdout(None) if rank else nullcontext():
            with collective_errors():
                store, _, _ = next(dist.rendezvous("env://", timeout=TIMEOUT))
                kept = dist.PrefixStore("elmoc", store)  # as long as torchrun lives
                store = rendezvous(kept, rank, size, TIMEOUT)
                dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=TIMEOUT)
            watch = PeerWatch(rank, size)
            processes.restarted = any(processes.all_gather(processes.restarted))
            if rank == 0:
                if not processes.restarted or not kept.check(["launch"]):  # killed before they had met
                    kept.set("launch", uuid.uuid4().hex)
                processes.launch = kept.get("launch").decode()
            yield processes
            with collective_errors():
                dist.barrier()
    except BaseException as error:
        fail(error, rank)
    watch.end()
    dist.destroy_process_group()


def fail(error: BaseException, rank: int) -> NoReturn:
    """Say what is wrong and end this process at once: its other threads wait for processes that may never answer.

    An error that all processes agree on is printed by the first one; what is one process's own names its rank.
    """
    status = 130 if isinstance(error, KeyboardInterrupt) else 1
    if isinstance(error, RaisedTogether) and rank:
        with suppress(RuntimeError):
            dist.barrier()  # which the first process never comes to: it has printed the error when this breaks off
    elif isinstance(error, InputError | OSError):
        print(f"error: rank {rank}: {sentence(error)}" if rank else f"error: {sentence(error)}", file=sys.stderr)
    elif isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        traceback.print_exception(error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def sentence(error: InputError | OSError) -> str:
    """The one sentence that an error is printed as."""
    return describe_os_error(error) if isinstance(error, OSError) else str(error)
