"""Optimiser: how weights follow their gradients, and how the learning rate follows the
progress of a run.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from msgspec import Meta
from torch import Tensor
from torch.optim import SGD, Adagrad, Adam, Optimizer

from elmoc.errors import InputError

# Of a whole run.
TENTHS = 10


@dataclass(frozen=True)
class ScheduleConfig:
    """The schedule of Chen et al. 2018 as the published ELMo-C code has it, and two
    linear ends for short runs.
    """

    base: Annotated[
        float, Meta(gt=0, le=1e6, description="the learning rate of one worker's batch")
    ] = 1e-4
    streams_per_worker: Annotated[
        int,
        Meta(
            ge=1,
            description="n = max(1, streams / streams_per_worker) is how many "
            "workers' batches an update has",
        ),
    ] = 128
    warmup_updates: Annotated[
        int,
        Meta(
            ge=1,
            description="the rate rises from base to n · base over this many "
            "updates, or over warmup_fraction of the run",
        ),
    ] = 10_000
    warmup_fraction: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="the same as a fraction of the run; the shorter one counts",
        ),
    ] = 0.1
    decay_start: Annotated[
        float,
        Meta(
            ge=0,
            le=1e6,
            description="where the rate begins to fall, as a fraction of the run",
        ),
    ] = 0.4
    decay_end: Annotated[
        float,
        Meta(
            le=1e6,
            description="where it would have fallen to base / 2, as a fraction of "
            "the run",
        ),
    ] = 2.0
    minimum: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="the rate never falls below this fraction of base (but for "
            "the cool-down)",
        ),
    ] = 0.5
    linear_warmup_updates: Annotated[
        int,
        Meta(
            ge=0,
            description="over this many first updates the rate rises linearly from "
            "zero (0: none)",
        ),
    ] = 0
    linear_cooldown: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="over this last fraction of the run the rate falls linearly "
            "to zero (0: none)",
        ),
    ] = 0.0

    def __post_init__(self) -> None:
        if self.decay_end <= self.decay_start:
            raise InputError(
                f"schedule.decay_end={self.decay_end} must be above "
                f"decay_start={self.decay_start}"
            )


class Progress(NamedTuple):
    """How far a run is: the part done, and the whole, both in updates or, with
    `--max-time`, in seconds.
    """

    done: float
    whole: float

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return min(1.0, self.done / self.whole)

    @property
    def is_over(self) -> bool:
        """Whether the run has reached its end."""
        return self.done >= self.whole

    @property
    def tenths(self) -> int:
        """Whole tenths of the run that are over."""
        return int(TENTHS * self.done // self.whole)


def learning_rate(
    config: ScheduleConfig, *, update: int, progress: Progress, streams: int
) -> float:
    """The learning rate of an update.

        n = max(1, streams / streams_per_worker)
        lr = base · min(1 + t(n−1)/warmup, n, n·(2n)^((s−p)/(e−s))),
        never under base · minimum

    where t is the update, p the progress, s and e `decay_start` and `decay_end`, and
    warmup the shorter one of the two in the config; times the linear warm-up and
    cool-down, where they are set.

    Args:
        config: the settings.
        update: t, from 0.
        progress: p, in updates or seconds.
        streams: over all processes.
    """
    done, whole = progress
    n = max(1.0, streams / config.streams_per_worker)
    # the shorter of two warm-ups rises faster
    rise = max(
        update * (n - 1) / config.warmup_updates,
        done * (n - 1) / (config.warmup_fraction * whole),
    )
    start = config.decay_start * whole
    # rounding may leave nothing between start and end in a short run
    span = max(config.decay_end * whole - start, sys.float_info.min)
    # above 0 before it starts, where the power could overflow and n is smaller anyway
    decay = min(0.0, (start - done) / span)
    rate = config.base * max(config.minimum, min(1 + rise, n, n * (2 * n) ** decay))
    if config.linear_warmup_updates:
        rate *= min(1.0, (update + 1) / config.linear_warmup_updates)
    if config.linear_cooldown:
        rate *= min(1.0, (whole - done) / (config.linear_cooldown * whole))
    return rate


@dataclass(frozen=True)
class OptimiserSettings(ABC):
    """What all optimisers have in common."""

    kind: ClassVar[str]

    gradient_norm: Annotated[
        float,
        Meta(
            gt=0,
            description="bound on the gradient norm of each direction (a separate "
            "model) and of each shared part; one direction alone is one model with it",
        ),
    ] = 1.0

    @abstractmethod
    def new(self, parameters: Sequence[Tensor], device: torch.device) -> Optimizer:
        """The optimiser of the weights of a direction, or of a shared part."""


@dataclass(frozen=True)
class AdamSettings(OptimiserSettings):
    """Adam (Kingma and Ba 2015)."""

    kind: ClassVar[str] = "adam"

    beta1: Annotated[
        float, Meta(ge=0, lt=1, description="decay of Adam's mean of the gradient")
    ] = 0.9
    beta2: Annotated[
        float, Meta(ge=0, lt=1, description="decay of Adam's mean of its square")
    ] = 0.999
    epsilon: Annotated[
        float, Meta(gt=0, le=1e3, description="what Adam adds to the root of that")
    ] = 1e-6

    def new(self, parameters: Sequence[Tensor], device: torch.device) -> Adam:
        # The rate, which is set before every update, is a tensor on an accelerator: a
        # graph or a kernel reads it there, and nothing waits.
        on_device = device.type != "cpu"
        return Adam(
            parameters,
            lr=torch.zeros((), device=device) if on_device else 0.0,
            capturable=on_device,
            betas=(self.beta1, self.beta2),
            eps=self.epsilon,
            fused=True,
        )


@dataclass(frozen=True)
class SgdSettings(OptimiserSettings):
    """Stochastic gradient descent without momentum, as in Press and Wolf (2017)."""

    kind: ClassVar[str] = "sgd"

    def new(self, parameters: Sequence[Tensor], device: torch.device) -> SGD:
        # The rate is set before every update.
        return SGD(parameters, lr=0.0, fused=True)


def new_adagrad(
    parameters: Sequence[Tensor], *, rate_factor: float, accumulator: float
) -> Adagrad:
    """Adagrad (Duchi et al. 2011) for weights with sparse gradients: rows without a
    gradient stay as they are.

    Args:
        parameters: the weights.
        rate_factor: how many times the learning rate of the schedule its own is.
        accumulator: what the sum of squares of the gradients begins with.
    """
    # which is the default; PyTorch warns where nobody has said so
    torch.sparse.check_sparse_tensor_invariants.disable()
    group = {"params": parameters, "rate_factor": rate_factor}
    # the rate is set before every update
    return Adagrad([group], lr=0.0, initial_accumulator_value=accumulator)


def set_rate(optimiser: Optimizer, rate: float) -> None:
    """Have an optimiser update at a learning rate of the schedule."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate * group.get("rate_factor", 1.0)


def clip_gradients(parameters: Sequence[Tensor], most: float) -> Tensor:
    """Scale gradients, dense or sparse and coalesced, down to the norm `most`; their
    norm before that, a scalar.

    PyTorch's `clip_grad_norm_` takes no sparse gradients.
    """
    gradients = [values_of(parameter) for parameter in parameters]
    norm = torch.nn.utils.get_total_norm(gradients)
    # with the same small number as PyTorch's, so that gradients of zeros stay finite
    scale = (most / (norm + 1e-6)).clamp(max=1)
    for gradient in gradients:
        gradient.mul_(scale)
    return norm


def values_of(parameter: Tensor) -> Tensor:
    """The numbers of a parameter's gradient; of a sparse one, coalesced, those of the
    rows that it has.
    """
    gradient = parameter.grad
    assert gradient is not None
    return gradient._values() if gradient.is_sparse else gradient
