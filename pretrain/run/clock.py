"""Clock: how fast a run is, when it evaluates and saves, and how many updates fit into the time that is left."""

import time
from dataclasses import dataclass
from functools import partial

from pretrain.config import LogConfig

UNMEASURED_UPDATES = 3
"""The first updates of a process are slow (allocation, caches) and are left out of the measured speed."""
MEASURED_UPDATES = 5
"""So many more, and the speed of a process is known."""
EVALUATIONS = 10
"""Evaluations of a run that does not say how often, after the one before its first update."""
MUCH = 0.2
"""The share of a run's time from which evaluations are said to take much of it."""


def evaluation_is_due(update: int, updates: int, every_updates: int, *, evaluated: int) -> bool:
    """At the end and every `every_updates`, or, where that is 0, at ten evenly spaced times of the run.

    `evaluated` is the update of the last evaluation: none of the ten is passed over while the run's length changes.
    """
    if update == updates:
        return True
    if every_updates:
        return update % every_updates == 0
    return update * EVALUATIONS // updates > evaluations_done(evaluated, updates)


def evaluations_done(evaluated: int, updates: int) -> int:
    """How many of the ten evaluations of a run are over when the last was at update `evaluated`.

    That is its tenth of the run, rounded: it may have been a little early, when the run had another length.
    """
    return (EVALUATIONS * evaluated + max(0, updates // 2 - EVALUATIONS)) // updates


def evaluations_of(updates: int, every_updates: int) -> int:
    """How many evaluations a run of `updates` has, the one before its first update included."""
    return 1 + (-(-updates // every_updates) if every_updates else min(EVALUATIONS, updates))


def evaluations_to_come(update: int, updates: int, *, evaluated: int) -> int:
    """How many of the ten evaluations of a run are to come after `update`, which may have one itself.

    `evaluated` is the update of the last one.
    """
    if evaluation_is_due(update, updates, 0, evaluated=evaluated):
        return 1 + EVALUATIONS - evaluations_done(update, updates)
    return max(1, EVALUATIONS - evaluations_done(evaluated, updates))  # one is at the end in any case


@dataclass(frozen=True)
class Length:
    """How much of a run fits into a time.

    updates: as many as fit, and at least one.
    evaluation_seconds: of the slowest evaluation.
    evaluation_share: of the time, what evaluations take.
    too_long: whole seconds by which the run will exceed the time, as its evaluations take too long for it.
    """

    updates: int
    evaluation_seconds: float
    evaluation_share: float
    too_long: int

    @property
    def about_evaluations(self) -> str:
        """A sentence where they take much of the time, with what to do; else empty."""
        faster = "a smaller evaluation.words makes them faster"
        if self.too_long:
            return (
                f"evaluations of {self.evaluation_seconds:.1f} s each take longer than --max-time allows: the run will "
                f"end about {self.too_long} s late ({faster})"
            )
        if self.evaluation_share > MUCH:
            return (
                f"evaluations of up to {self.evaluation_seconds:.1f} s each will take about "
                f"{self.evaluation_share:.0%} of the time ({faster})"
            )
        return ""


def length_within(seconds: float, per_update: float, per_evaluation: float, *, evaluations: int, every: int) -> Length:
    """What fits into so many `seconds`; where `every` is 0, at least half is for updates, however slow evaluations are.

    Args:
        per_update, per_evaluation: seconds of each.
        evaluations: those to come; where `every` is not 0, one comes after so many updates, and one at the end.
    """
    at_end = (1 if every else evaluations) * per_evaluation
    between = per_evaluation / every if every else 0.0
    updates = max(1, int(max(seconds / 2, seconds - at_end) / (per_update + between)))
    evaluating = (-(-updates // every) if every else min(evaluations, updates)) * per_evaluation
    too_long = 0
    if evaluating > max(0.0, seconds) / 2:  # else it is updates that take long
        too_long = max(0, round(updates * per_update + evaluating - seconds))
    return Length(updates, per_evaluation, evaluating / max(seconds, evaluating, 1e-9), too_long)


class Clock:
    """Time of a run over all its processes.

    Args:
        before: seconds that the run took before this process.
        limit: seconds that the whole run may take, or None.
        longest_evaluation: seconds of the longest before this process.
        unmeasured: so many updates of this process are left out of the measured speed.
    """

    def __init__(
        self,
        before: float,
        limit: float | None,
        *,
        longest_evaluation: float = 0.0,
        unmeasured: int = UNMEASURED_UPDATES,
    ) -> None:
        self.limit = limit
        self._before = before
        self._started = time.monotonic()
        self._measured_from = self._started
        self._last_checkpoint = self._started
        self._updates = 0
        self._evaluation_seconds = 0.0  # since _measured_from
        self.longest_evaluation = longest_evaluation
        self._unmeasured = unmeasured
        self.measured_after = unmeasured + MEASURED_UPDATES
        """The updates of this process after which its speed is known."""

    def seconds(self) -> float:
        """Of the whole run so far."""
        return self._before + time.monotonic() - self._started

    def record_update(self) -> None:
        """An update is done."""
        self._updates += 1
        if self._updates == self._unmeasured:
            self._measured_from, self._evaluation_seconds = time.monotonic(), 0.0

    def record_evaluation(self, seconds: float) -> None:
        """An evaluation is done, which took `seconds`."""
        self._evaluation_seconds += seconds
        self.longest_evaluation = max(self.longest_evaluation, seconds)

    def record_checkpoint(self) -> None:
        """A checkpoint is written."""
        self._last_checkpoint = time.monotonic()

    def seconds_per_update(self) -> float:
        """Measured in this process, evaluations left out; NaN before enough updates."""
        measured = self._updates - self._unmeasured
        if measured < 1:
            return float("nan")
        return (time.monotonic() - self._measured_from - self._evaluation_seconds) / measured

    def words_per_second(self, words_per_update: int) -> float:
        """The measured speed of updates that read `words_per_update` words."""
        return words_per_update / self.seconds_per_update()

    def may_set_length(self, update: int, updates: int, share_before_decay: float) -> bool:
        """Whether the length of a run with a limit may be set (again) after `update` of `updates`.

        It may be as soon as the speed is known and then every 20 updates, as long as the learning rate is not yet
        falling: before `share_before_decay` of the updates. In a run that this process began or resumed too early for
        its length to have been set, it may be set once even later than that.
        """
        never_set = update - self._updates < self.measured_after
        return (
            self.limit is not None
            and self._updates >= self.measured_after
            and (self._updates - self.measured_after) % 20 == 0
            and ((never_set and self._updates == self.measured_after) or update < share_before_decay * updates)
        )

    def length_within_limit(self, every: int, *, update: int, evaluated: int) -> Length:
        """What still fits into the run's limit after `update`, with the evaluations that come within that length.

        These are after `every` updates, or ten where that is 0; the last was at update `evaluated`.
        """
        assert self.limit is not None
        fit = partial(
            length_within,
            self.limit - self.seconds(),
            self.seconds_per_update(),
            self.longest_evaluation,
            every=every,
        )
        with_all = update + fit(evaluations=EVALUATIONS).updates
        return fit(evaluations=evaluations_to_come(update, with_all, evaluated=evaluated))

    def checkpoint_is_due(self, update: int, config: LogConfig) -> bool:
        """Every `checkpoint_updates`, or, where that is 0, every `checkpoint_minutes`."""
        if config.checkpoint_updates:
            return update % config.checkpoint_updates == 0
        return time.monotonic() - self._last_checkpoint > 60 * config.checkpoint_minutes
