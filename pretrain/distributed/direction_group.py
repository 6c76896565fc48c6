"""Direction group: the processes that train one direction, and the sums of their losses and gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from elmoc.errors import InputError
from pretrain.config import TrainConfig
from pretrain.distributed.errors import collective_errors

# gradients of fewer numbers than this are reduced together, in one message
SMALL = 1 << 14


def direction_ranks(config: TrainConfig, world_size: int) -> dict[str, range]:
    """The ranks that train each direction; an `InputError` when the work cannot be divided among the processes."""
    halves = config.parallel == "directions" and world_size > 1
    if halves and (world_size % 2 or len(config.directions) < 2):
        raise InputError(
            'train.parallel="directions" needs an even number of processes and both directions in '
            f"train.directions, not {world_size} and {', '.join(config.directions)}"
        )
    if world_size > 1 and config.device.startswith("cuda:"):
        raise InputError(f"train.device={config.device} is one GPU for {world_size} processes: use cuda or auto")
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
    """The processes that train one direction, each with an equal share of the streams; by default there is one.

    rank: the number of this process among the `world_size` processes of the group.
    leader: the rank among all processes of the first one of the group.
    device_group, cpu_group: for tensors on the device (losses, gradients) and in main memory; None of one process.
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
        """Scalars, each summed over the processes (in float64); the given ones stay as they are."""
        if self.device_group is None:
            return list(values)
        together = torch.stack([value.double() for value in values])
        with collective_errors():
            dist.all_reduce(together, group=self.device_group)
        return [total.to(value.dtype) for total, value in zip(together, values, strict=True)]

    def all_reduce_gradients(self, parameters: Sequence[Tensor]) -> None:
        """From now on, sum the gradients of the direction's parameters in every backward pass."""
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
        """Rows [B / world_size, …] of every process as [B, …] on the CPU, in the leader alone."""
        rows = rows.cpu()
        if self.cpu_group is None:
            return rows
        received = [torch.empty_like(rows) for _ in range(self.world_size)] if self.rank == 0 else None
        with collective_errors():
            dist.gather(rows, received, dst=self.leader, group=self.cpu_group)
        return None if received is None else torch.cat(received)


class GradientReducer:
    """Sums gradients over the processes of a group while the backward pass runs.

    A large one is sent as soon as it is whole, behind the rest of the pass; the small ones together, at its end.
    Every process computes the same graph, so that gradients become ready in the same order everywhere.
    """

    def __init__(self, parameters: Sequence[Tensor], group: dist.ProcessGroup) -> None:
        self._group = group
        self._small = [parameter for parameter in parameters if parameter.numel() < SMALL]
        self._sent: list[dist.Work] = []
        for parameter in parameters:
            if parameter.numel() >= SMALL:
                parameter.register_post_accumulate_grad_hook(self._send)

    def _send(self, parameter: Tensor) -> None:
        assert parameter.grad is not None
        with collective_errors():
            self._sent.append(dist.all_reduce(parameter.grad, group=self._group, async_op=True))

    def wait(self) -> None:
        """Send the small gradients, and wait for all."""
        gradients = [parameter.grad for parameter in self._small if parameter.grad is not None]
        together = torch.cat([gradient.flatten() for gradient in gradients]) if gradients else None
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
