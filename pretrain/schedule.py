"""What is the learning rate at an update?"""

from dataclasses import dataclass

from elmoc.errors import InputError


@dataclass(frozen=True)
class ScheduleConfig:
    """The schedule of Chen et al. 2018 as the published ELMo-C code has it, and two linear ends for short runs.

    base: the learning rate of one worker's batch.
    streams_per_worker: n = max(1, streams / streams_per_worker).
    warmup_updates, warmup_fraction: the rise from base to n · base takes the smaller of both (of the run's updates).
    decay_start, decay_end: s and e as fractions of the run's updates.
    minimum: the rate never falls below this fraction of base (but for the cool-down).
    linear_warmup_updates: the first so many updates rise linearly from zero (0: none).
    linear_cooldown: over this last fraction of the run the rate falls linearly to zero (0: not).
    """

    base: float = 1e-4
    streams_per_worker: int = 128
    warmup_updates: int = 10_000
    warmup_fraction: float = 0.1
    decay_start: float = 0.4
    decay_end: float = 2.0
    minimum: float = 0.5
    linear_warmup_updates: int = 0
    linear_cooldown: float = 0.0

    def check(self) -> None:
        """Raise an `InputError` that names the first impossible value."""
        conditions = {
            "base": self.base > 0,
            "streams_per_worker": self.streams_per_worker >= 1,
            "warmup_updates": self.warmup_updates >= 1,
            "warmup_fraction": 0 < self.warmup_fraction <= 1,
            "decay_start": self.decay_start >= 0,
            "decay_end": self.decay_end > self.decay_start,
            "minimum": 0 <= self.minimum <= 1,
            "linear_warmup_updates": self.linear_warmup_updates >= 0,
            "linear_cooldown": 0 <= self.linear_cooldown <= 1,
        }
        for name, holds in conditions.items():
            if not holds:
                raise InputError(f"schedule.{name} has the impossible value {getattr(self, name)!r}")


def learning_rate(config: ScheduleConfig, *, update: int, updates: int, streams: int) -> float:
    """The learning rate of update `update` (from 0) of `updates`, with `streams` streams over all processes.

        n = max(1, streams / streams_per_worker)
        lr(t) = base · min(1 + t(n−1)/warmup, n, n·(2n)^((s−t)/(e−s))), never under base · minimum

    times the linear warm-up and cool-down, where they are set.
    """
    n = max(1.0, streams / config.streams_per_worker)
    warmup = max(1.0, min(config.warmup_updates, config.warmup_fraction * updates))
    start, end = config.decay_start * updates, config.decay_end * updates
    decayed = n * (2 * n) ** ((start - update) / (end - start))
    rate = config.base * max(config.minimum, min(1 + update * (n - 1) / warmup, n, decayed))
    if config.linear_warmup_updates:
        rate *= min(1.0, (update + 1) / config.linear_warmup_updates)
    if config.linear_cooldown:
        rate *= min(1.0, (updates - update) / (config.linear_cooldown * updates))
    return rate
