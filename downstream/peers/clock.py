"""Clock: how long has a training gone on, what is its learning rate now, and what does its log say?"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmoc.progress import progress_bar

LOG_SECONDS = 10.0
"""Between two lines of a log."""
WARM_UP = 0.05
"""The part of the time in which the learning rate rises."""


class TimeIsOver(KeyboardInterrupt):
    """The time of a training is over; trainers that end early on an interrupt end so."""


def learning_rate_factor(fraction: float, warm_up: float = WARM_UP) -> float:
    """The learning rate, by its peak, after a fraction of the time: a linear rise, then a linear fall to zero."""
    if fraction < warm_up:
        return fraction / warm_up
    return max(0.0, 1 - fraction) / (1 - warm_up)


class Clock:
    """The time of a training, which may be interrupted and gone on with, and its log.

    The log has a JSON line every ten seconds: `seconds`, `words` so far, `loss` (the mean since the last line),
    `learning_rate` (by its peak), and what else `names` says. The time begins with `start`.

    Args:
        limit: seconds of the whole training.
        before: seconds and words before this process.
        words: see `before`.
        log: the file to which lines are added, or None.
        shown: whether a progress bar is drawn.
        names: what every line of the log holds beside its numbers.
    """

    def __init__(
        self,
        limit: float,
        *,
        before: float = 0.0,
        words: float = 0.0,
        log: Path | None = None,
        shown: bool = True,
        names: dict[str, str] | None = None,
    ) -> None:
        self.limit, self.words = limit, words
        self._before = before
        self._began: float | None = None
        self._log, self._names = log, names or {}
        self._losses: list[float] = []
        self._logged = self._kept = before
        self._bar = progress_bar(
            total=round(limit), initial=round(before), unit=" s", desc="training", disable=not shown, leave=False
        )

    def start(self) -> None:
        """Begin to count, where that has not begun."""
        if self._began is None:
            self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Of the training so far."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    @property
    def fraction(self) -> float:
        """The part of the time that is over."""
        return min(1.0, self.seconds / self.limit)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.seconds >= self.limit

    @property
    def factor(self) -> float:
        """The learning rate now, by its peak."""
        return learning_rate_factor(self.fraction)

    def record_step(self, words: float, loss: float) -> None:
        """A step is done that read so many words, at this loss."""
        self.start()
        self.words += words
        self._losses.append(loss)
        seconds = self.seconds
        if seconds - self._logged >= LOG_SECONDS or self.is_over:
            self._write_line(seconds)
            self._bar.update(round(min(seconds, self.limit)) - self._bar.n)

    def is_due(self, every: float) -> bool:
        """Whether so many seconds are over since this was last true, or since the beginning."""
        due = self.seconds - self._kept >= every
        if due:
            self._kept = self.seconds
        return due

    def finish(self, *, seconds: float, words: float) -> None:
        """The training was done, and counted, by other processes."""
        self._before, self.words, self._began = seconds, words, None

    def close(self) -> None:
        """End the progress bar."""
        self._bar.close()

    def _write_line(self, seconds: float) -> None:
        loss = sum(self._losses) / len(self._losses)
        self._bar.set_postfix_str(f"{self.words:,.0f} words, loss {loss:.3f}", refresh=False)
        line = self._names | {"seconds": round(seconds, 1), "words": round(self.words), "loss": round(loss, 4)}
        self._losses, self._logged = [], seconds
        if self._log is not None:
            with open(self._log, "a", encoding="utf-8") as file:
                file.write(json.dumps(line | {"learning_rate": round(self.factor, 4)}) + "\n")


def follow_clock(
    optimizer: Any, clock: Clock, *, peak: float, words: Callable[[], float], loss: Callable[[], float]
) -> None:
    """Have a PyTorch optimizer take its learning rate from the clock, report each step, and end when time is over.

    Args:
        optimizer: its steps raise `TimeIsOver` after the last.
        clock: counts from the first step.
        peak: the highest learning rate.
        words: how many the step has read.
        loss: of the step.
    """

    def before(*_: Any) -> None:
        clock.start()
        for group in optimizer.param_groups:
            group["lr"] = peak * clock.factor

    def after(*_: Any) -> None:
        clock.record_step(words(), loss())
        if clock.is_over:
            raise TimeIsOver

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)
