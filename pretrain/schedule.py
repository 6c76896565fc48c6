"""Schedule: how far a run is, and what follows from that: the learning rate, evaluations and the end."""

import re
import sys
from dataclasses import dataclass
from typing import NamedTuple

from elmoc.errors import InputError
from elmoc.settings import setting


@dataclass(frozen=True)
class ScheduleConfig:
    """The schedule of Chen et al. 2018 as the published ELMo-C code has it, and two linear ends for short runs.

    base: the learning rate of one worker's batch.
    streams_per_worker: n = max(1, streams / streams_per_worker) is how many workers' batches an update has.
    warmup_updates: the rate rises from base to n · base over this many updates, or over warmup_fraction of the run.
    warmup_fraction: the same as a fraction of the run; the shorter one counts.
    decay_start: where the rate begins to fall, as a fraction of the run.
    decay_end: where it would have fallen to base / 2, as a fraction of the run.
    minimum: the rate never falls below this fraction of base (but for the cool-down).
    linear_warmup_updates: over this many first updates the rate rises linearly from zero (0: none).
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

    def __post_init__(self) -> None:
        if self.decay_end <= self.decay_start:
            raise InputError(f"schedule.decay_end={self.decay_end} must be above decay_start={self.decay_start}")


class Progress(NamedTuple):
    """How far a run is: what is done of the whole, both in updates or, with `--max-time`, in seconds."""

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
        return int(10 * self.done // self.whole)


def learning_rate(config: ScheduleConfig, *, update: int, progress: Progress, streams: int) -> float:
    """The learning rate of update `update` (from 0), with `streams` streams over all processes.

        n = max(1, streams / streams_per_worker)
        lr = base · min(1 + t(n−1)/warmup, n, n·(2n)^((s−p)/(e−s))), never under base · minimum

    where t is the update, p the progress and warmup the shorter one of the two in the config; times the linear warm-up
    and cool-down, where they are set.
    """
    done, whole = progress
    n = max(1.0, streams / config.streams_per_worker)
    rise = max(update * (n - 1) / config.warmup_updates, done * (n - 1) / (config.warmup_fraction * whole))
    start, end = config.decay_start * whole, config.decay_end * whole
    decay = min(0.0, (start - done) / max(end - start, sys.float_info.min))  # before it starts, n is the smaller
    rate = config.base * max(config.minimum, min(1 + rise, n, n * (2 * n) ** decay))
    if config.linear_warmup_updates:
        rate *= min(1.0, (update + 1) / config.linear_warmup_updates)
    if config.linear_cooldown:
        rate *= min(1.0, (whole - done) / (config.linear_cooldown * whole))
    return rate


def parse_duration(text: str) -> float:
    """Seconds from `90s`, `60m`, `2h`, `1d`; raises `InputError`, which names `--max-time`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    seconds = float(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0
    if not seconds:
        raise InputError(f"--max-time takes a number and one of s, m, h, d, such as 60m; not {text!r}")
    return seconds
