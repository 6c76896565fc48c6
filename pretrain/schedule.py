"""Schedule: the learning rate of every update."""

import sys
from dataclasses import dataclass

from elmoc.errors import InputError
from elmoc.settings import setting


@dataclass(frozen=True)
class ScheduleConfig:
    """The schedule of Chen et al. 2018 as the published ELMo-C code has it, and two linear ends for short runs.

    base: the learning rate of one worker's batch.
    streams_per_worker: n = max(1, streams / streams_per_worker).
    warmup_updates, warmup_fraction: the rise from base to n · base takes the smaller of both (of the run's updates).
    decay_start, decay_end: s and e as fractions of the run's updates.
    minimum: the rate never falls below this fraction of base (but for the cool-down).
    linear_warmup_updates: over this number of first updates the rate rises linearly from zero (0: none).
    linear_cooldown: over this last fraction of the run the rate falls linearly to zero (0: none).
    """

    base: float = setting(1e-4, above=0, most=1e6)
    streams_per_worker: int = setting(128, least=1)
    warmup_updates: int = setting(10_000, least=1)
    warmup_fraction: float = setting(0.1, above=0, most=1)
    decay_start: float = setting(0.4, least=0, most=1e6)
    decay_end: float = setting(2.0, most=1e6)
    minimum: float = setting(0.5, least=0, most=1)
    linear_warmup_updates: int = setting(0, least=0)
    linear_cooldown: float = setting(0.0, least=0, most=1)

    @property
    def share_before_decay(self) -> float:
        """The share of the run's updates before its rate begins to fall; until then the run's length may change."""
        return min(self.decay_start, 1 - self.linear_cooldown)

    def check(self) -> None:
        """Raise an `InputError` when the decay ends before it starts."""
        if self.decay_end <= self.decay_start:
            raise InputError(
                f"schedule.decay_end must be above schedule.decay_start={self.decay_start}, not {self.decay_end}"
            )


def learning_rate(config: ScheduleConfig, *, update: int, updates: int, streams: int) -> float:
    """The learning rate of update `update` (from 0) of `updates`, with `streams` streams over all processes.

        n = max(1, streams / streams_per_worker)
        lr(t) = base · min(1 + t(n−1)/warmup, n, n·(2n)^((s−t)/(e−s))), never under base · minimum

    times the linear warm-up and cool-down, where they are set.
    """
    n = max(1.0, streams / config.streams_per_worker)
    warmup = max(1.0, min(config.warmup_updates, config.warmup_fraction * updates))
    start, end = config.decay_start * updates, config.decay_end * updates
    decay = min(0.0, (start - update) / max(end - start, sys.float_info.min))  # before it starts, n is the smaller
    decayed = n * (2 * n) ** decay
    rate = config.base * max(config.minimum, min(1 + update * (n - 1) / warmup, n, decayed))
    if config.linear_warmup_updates:
        rate *= min(1.0, (update + 1) / config.linear_warmup_updates)
    if config.linear_cooldown:
        rate *= min(1.0, (updates - update) / (config.linear_cooldown * updates))
    return rate
