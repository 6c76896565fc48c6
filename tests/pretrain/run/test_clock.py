"""Clock: a run with a time limit gets the length that fits, and evaluates and saves when it should."""

import random
from itertools import pairwise

import pytest

from pretrain.run import clock as clock_module
from pretrain.run.clock import (
    EVALUATIONS,
    MEASURED_UPDATES,
    UNMEASURED_UPDATES,
    Clock,
    LogConfig,
    evaluation_is_due,
    evaluations_of,
    evaluations_to_come,
    length_within,
)


class FakeTime:
    """A clock that stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(clock_module, "time", fake)
    return fake


def run_updates(clock: Clock, fake_time: FakeTime, count: int, seconds: float) -> None:
    for _ in range(count):
        fake_time.now += seconds
        clock.record_update()


def test_length_follows_the_measured_speed_evaluations_included(fake_time: FakeTime) -> None:
    clock = Clock(before=0.0, limit=1000.0)
    fake_time.now += 10.0
    clock.record_evaluation(10.0)
    run_updates(clock, fake_time, UNMEASURED_UPDATES, 30.0)  # slow ones, left out
    run_updates(clock, fake_time, 5, 2.0)
    update = UNMEASURED_UPDATES + 5
    assert clock.seconds_per_update() == pytest.approx(2.0)
    assert clock.words_per_second(640) == pytest.approx(320.0)
    assert clock.may_set_length(update, 10**9, 0.4)
    left = 1000.0 - clock.seconds()
    # ten evaluations of ten seconds are set aside
    length = clock.length_within_limit(0, update=update, evaluated=0)
    assert length.updates == int((left - 100.0) / 2.0)
    # one evaluation every 5 updates makes an update 4 seconds long
    length = clock.length_within_limit(5, update=update, evaluated=5)
    assert length.updates == int((left - 10.0) / 4.0), "the last one comes besides"
    # of the ten, those that are over are not set aside again
    length = clock.length_within_limit(0, update=60, evaluated=45)
    assert length.updates == int((left - 90.0) / 2.0)


def test_more_updates_are_left_out_where_more_are_slow(fake_time: FakeTime) -> None:
    clock = Clock(before=0.0, limit=1000.0, unmeasured=UNMEASURED_UPDATES + 1)
    run_updates(clock, fake_time, UNMEASURED_UPDATES + 1, 30.0)
    run_updates(clock, fake_time, MEASURED_UPDATES - 1, 2.0)
    assert clock.seconds_per_update() == pytest.approx(2.0)
    assert not clock.may_set_length(clock.measured_after - 1, 10**9, 0.4)
    run_updates(clock, fake_time, 1, 2.0)
    assert clock.may_set_length(clock.measured_after, 10**9, 0.4)


def test_no_new_plan_once_the_rate_falls(fake_time: FakeTime) -> None:
    clock = Clock(before=0.0, limit=1000.0)
    run_updates(clock, fake_time, UNMEASURED_UPDATES + 25, 1.0)
    assert clock.may_set_length(39, 100, 0.4)
    assert not clock.may_set_length(40, 100, 0.4)


def test_evaluations_that_take_too_long_leave_half_of_the_time(fake_time: FakeTime) -> None:
    clock = Clock(before=0.0, limit=60.0)
    fake_time.now += 10.0
    clock.record_evaluation(10.0)
    run_updates(clock, fake_time, UNMEASURED_UPDATES, 0.0)
    run_updates(clock, fake_time, 5, 2.0)
    length = clock.length_within_limit(0, update=8, evaluated=0)
    assert length.updates == 10, "20 of the 40 seconds that are left"
    assert length.too_long == 70 - 20, "update 8 of 18 has an evaluation of its own, and six come after it"
    assert length.about_evaluations.startswith("evaluations of 10.0 s each take longer than --max-time allows")
    length = clock.length_within_limit(10**6, update=8, evaluated=0)
    assert (length.updates, length.too_long) == (14, 0)


@pytest.mark.parametrize(("seconds", "updates", "late"), [(190.0, 8, 0), (60.0, 2, 42)])
def test_lateness_where_evaluations_come_every_so_many_updates(seconds: float, updates: int, late: int) -> None:
    """Updates of 1 second, and 100 for an evaluation after every 10 of them, of which one is at the end."""
    length = length_within(seconds, 1.0, 100.0, evaluations=EVALUATIONS, every=10)
    assert (length.updates, length.too_long) == (updates, late)


def test_time_that_is_over_is_no_fault_of_evaluations(fake_time: FakeTime) -> None:
    clock = Clock(before=7200.0, limit=3600.0)
    run_updates(clock, fake_time, UNMEASURED_UPDATES + 5, 2.0)
    length = clock.length_within_limit(0, update=8, evaluated=0)
    assert (length.updates, length.too_long) == (1, 0)


def test_time_before_a_resume_counts(fake_time: FakeTime) -> None:
    clock = Clock(before=400.0, limit=1000.0)
    fake_time.now += 50.0
    assert clock.seconds() == pytest.approx(450.0)


def test_checkpoints_by_minutes_or_updates(fake_time: FakeTime) -> None:
    clock = Clock(before=0.0, limit=None)
    by_minutes, by_updates = LogConfig(checkpoint_minutes=2.0), LogConfig(checkpoint_updates=7)
    assert not clock.checkpoint_is_due(7, by_minutes)
    assert clock.checkpoint_is_due(14, by_updates)
    assert not clock.checkpoint_is_due(15, by_updates)
    fake_time.now += 121.0
    assert clock.checkpoint_is_due(7, by_minutes)
    clock.record_checkpoint()
    assert not clock.checkpoint_is_due(8, by_minutes)


def test_evaluations_are_ten_a_run_or_every_so_many_updates() -> None:
    def due(updates: int, every: int) -> list[int]:
        evaluated = [0]
        for update in range(1, updates + 1):
            if evaluation_is_due(update, updates, every, evaluated=evaluated[-1]):
                evaluated.append(update)
        return evaluated[1:]

    assert due(100, 0) == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert len(due(57, 0)) == 10
    assert due(57, 0)[-1] == 57
    assert due(4, 0) == [1, 2, 3, 4]
    assert due(20, 8) == [8, 16, 20]
    for updates in range(1, 300):  # at the update that reaches each tenth
        tenths = [-(-tenth * updates // 10) for tenth in range(1, 11)]
        assert due(updates, 0) == sorted(set(tenths))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("config", [12, 60, 10**6])
def test_evaluations_come_at_their_times_while_the_length_is_being_set(config: int, seed: int) -> None:
    wobble = random.Random(seed)
    length, updates, evaluated = 5000, config, [0]
    update = 0
    while update < updates:
        update += 1
        if (update >= 8 and update % 20 == 8 and update < 0.4 * updates) or update == 8:
            updates = round(length * wobble.uniform(0.8, 1.25))
        if evaluation_is_due(update, updates, 0, evaluated=evaluated[-1]):
            evaluated.append(update)
    later = [each / updates for each in evaluated if each > 8]  # the first length was that of the config
    gaps = [after - before for before, after in pairwise([0, *later])]
    assert later[-1] == 1
    assert 9 <= len(later) <= 12
    assert max(gaps) < 0.2


def test_a_resumed_run_sets_aside_the_evaluations_that_are_to_come(fake_time: FakeTime) -> None:
    clock = Clock(before=0.0, limit=1500.0, longest_evaluation=10.0)
    run_updates(clock, fake_time, UNMEASURED_UPDATES + 5, 2.0)
    left = 1500.0 - clock.seconds()
    assert clock.length_within_limit(0, update=320, evaluated=300).updates == int((left - 7 * 10.0) / 2.0)


@pytest.mark.parametrize("evaluated", [0, 3, 7])
def test_evaluations_to_come_are_those_that_come(evaluated: int) -> None:
    for updates in range(12, 300):
        later = [evaluated]
        for update in range(8, updates + 1):
            if evaluation_is_due(update, updates, 0, evaluated=later[-1]):
                later.append(update)
        assert evaluations_to_come(8, updates, evaluated=evaluated) == len(later) - 1


@pytest.mark.parametrize("config", [4, 20, 10**6])
def test_a_run_ends_in_time_whatever_length_its_config_has(fake_time: FakeTime, config: int) -> None:
    """Of updates of 1 second, and evaluations of 10, of which the config's length brings some before the first look."""
    clock = Clock(before=0.0, limit=400.0, longest_evaluation=10.0)
    updates, update, evaluated = max(config, clock.measured_after), 0, 0
    while update < updates:
        run_updates(clock, fake_time, 1, 1.0)
        update += 1
        if clock.may_set_length(update, updates, 0.4):
            updates = update + clock.length_within_limit(0, update=update, evaluated=evaluated).updates
        if evaluation_is_due(update, updates, 0, evaluated=evaluated):
            evaluated = update
            fake_time.now += 10.0
            clock.record_evaluation(10.0)
    assert 390.0 < clock.seconds() <= 400.0


@pytest.mark.parametrize(("every", "much"), [(0, True), (20, True), (5000, False)])
def test_evaluations_that_take_much_of_the_time_are_said(fake_time: FakeTime, every: int, much: bool) -> None:
    clock = Clock(before=0.0, limit=1020.0)
    fake_time.now += 10.0
    clock.record_evaluation(50.0)
    run_updates(clock, fake_time, UNMEASURED_UPDATES, 0.0)
    run_updates(clock, fake_time, 5, 2.0)
    length = clock.length_within_limit(every, update=8, evaluated=0)
    evaluations = 10 if every == 0 else 1 + length.updates // every
    assert length.evaluation_share == pytest.approx(50.0 * evaluations / 1000.0)
    said = f"evaluations of up to 50.0 s each will take about {length.evaluation_share:.0%} of the time"
    assert length.about_evaluations.partition(" (")[0] == (said if much else "")


@pytest.mark.parametrize(("updates", "every"), [(1, 0), (9, 0), (10, 0), (25, 0), (25, 7), (28, 7), (3, 7), (100, 0)])
def test_number_of_evaluations(updates: int, every: int) -> None:
    evaluated = [0]
    for update in range(1, updates + 1):
        if evaluation_is_due(update, updates, every, evaluated=evaluated[-1]):
            evaluated.append(update)
    assert len(evaluated) == evaluations_of(updates, every)
