"""How do the losses and gradients of some streams become those of all the streams of a direction?"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pretrain.distributed.peer_watch import collective_errors

SMALL = 1 << 14
"""Gradients of fewer numbers than this are summed together, in one message."""


class DirectionGroup:
    """The processes that train one direction, each with its part of the streams; by default there is one.

    Args:
        part, parts: this process reads part `part` of `parts` equal parts of the streams.
        leader: the rank of the process that reads the first part.
    """

    def __init__(self, *, part: int = 0, parts: int = 1, leader: int = 0) -> None:
        self.part = part
        self.parts = parts
        self.leader = leader
        self._sums: dist.ProcessGroup | None = None
        self._messages: dist.ProcessGroup | None = None
        self._gradients: GradientSum | None = None

    def connect(self, *, sums: dist.ProcessGroup, messages: dist.ProcessGroup) -> None:
        """Take the process groups for losses and gradients (on the device), and for tensors in main memory."""
        self._sums = sums
        self._messages = messages

    def own(self, streams: int) -> slice:
        """Which of so many streams this process reads."""
        each = streams // self.parts
        return slice(self.part * each, (self.part + 1) * each)

    def sum(self, *values: Tensor) -> list[Tensor]:
        """Scalars, each summed over the processes."""
        if self._sums is None:
            return list(values)
        together = torch.stack([value.double() for value in values])
        with collective_errors():
            dist.all_reduce(together, group=self._sums)
        return [total.to(value.dtype) for total, value in zip(together, values, strict=True)]

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """From now on, sum the gradients of the direction's parameters in every backward pass."""
        if self._sums is not None:
            self._gradients = GradientSum(parameters, self._sums)

    def wait_for_gradients(self) -> None:
        """Wait until the gradients of a backward pass are summed."""
        if self._gradients is not None:
            self._gradients.wait()

    def gather(self, rows: Tensor) -> Tensor | None:
        """Rows [B / parts, …] of every process as [B, …] on the CPU, in the leader alone."""
        rows = rows.cpu()
        if self._messages is None:
            return rows
        received = [torch.empty_like(rows) for _ in range(self.parts)] if self.part == 0 else None
        with collective_errors():
            dist.gather(rows, received, dst=self.leader, group=self._messages)
        return None if received is None else torch.cat(received)


class GradientSum:
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
        """Send what is small, and wait for everything."""
        gradients = [parameter.grad for parameter in self._small if parameter.grad is not None]
        together = torch.cat([gradient.flatten() for gradient in gradients])
        with collective_errors():
            dist.all_reduce(together, group=self._group)
            for work in self._sent:
                work.wait()
        self._sent.clear()
        for gradient, total in zip(gradients, together.split([each.numel() for each in gradients]), strict=True):
            gradient.copy_(total.view_as(gradient))
