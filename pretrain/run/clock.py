"""How fast is the run, when is the next checkpoint due, and how many updates fit into the time that is left?"""

import time

from pretrain.config import LogConfig
from pretrain.train_state import TrainState

UNMEASURED_UPDATES = 3
"""The first updates of a process are slow (allocation, caches) and are left out of the measured speed."""


EVALUATIONS = 10
"""Evaluations of a run that does not say how often, after the one before its first update."""


class Clock:
    """Time of a run over all its processes.

    Args:
        before: seconds that the run took before this process.
        limit: seconds that the whole run may take, or None.
    """

    def __init__(self, before: float, limit: float | None) -> None:
        self.limit = limit
        self._before = before
        self._started = time.monotonic()
        self._measured_from = self._started
        self._last_save = self._started
        self._updates = 0
        self._aside = 0.0  # seconds of evaluation since _measured_from
        self._evaluation = 0.0  # the longest evaluation so far
        self._evaluations = 0

    def seconds(self) -> float:
        """Of the whole run so far."""
        return self._before + time.monotonic() - self._started

    def updated(self) -> None:
        """An update is done."""
        self._updates += 1
        if self._updates == UNMEASURED_UPDATES:
            self._measured_from, self._aside = time.monotonic(), 0.0

    def evaluated(self, seconds: float) -> None:
        """An evaluation took so long."""
        self._aside += seconds
        self._evaluation = max(self._evaluation, seconds)
        self._evaluations += 1

    def seconds_per_update(self) -> float:
        """Measured in this process, evaluations left out; NaN before enough updates."""
        measured = self._updates - UNMEASURED_UPDATES
        if measured < 1:
            return float("nan")
        return (time.monotonic() - self._measured_from - self._aside) / measured

    def speed(self, words_per_update: int) -> float:
        """Words a second."""
        return words_per_update / self.seconds_per_update()

    def may_plan(self, state: TrainState, steady: float) -> bool:
        """Whether the run's length may (again) be set: the speed is known, the rate is not yet falling.

        `steady` is the share of the run's updates before the schedule begins to fall.
        """
        measured = self._updates - UNMEASURED_UPDATES
        return (
            measured >= 5
            and measured % 20 == 5
            and (state.update == UNMEASURED_UPDATES + 5 or state.update < steady * state.updates)
        )

    def planned_updates(self, state: TrainState, evaluate_every: int) -> int:
        """The updates of the whole run that fit into the limit, evaluations included."""
        assert self.limit is not None
        left = self.limit - self.seconds()
        per_update = self.seconds_per_update()
        if evaluate_every:
            more = left / (per_update + self._evaluation / evaluate_every)
        else:
            to_come = max(0, 1 + EVALUATIONS - self._evaluations)  # one was before the first update
            # half of the time is for updates, however slow evaluations are
            more = max(left / 2, left - to_come * self._evaluation) / per_update
        return state.update + max(1, int(more))

    def saved(self) -> None:
        """A checkpoint was written."""
        self._last_save = time.monotonic()

    def save_is_due(self, update: int, config: LogConfig) -> bool:
        """Every so many updates, or, where that is 0, minutes."""
        if config.checkpoint_updates:
            return update % config.checkpoint_updates == 0
        return time.monotonic() - self._last_save > 60 * config.checkpoint_minutes
