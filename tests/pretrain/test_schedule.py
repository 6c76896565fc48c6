"""Schedule: the learning rate is that of the formula."""

from itertools import pairwise
from math import inf, isfinite, nextafter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmoc.errors import InputError
from elmoc.settings import check_settings
from pretrain.schedule import Progress, ScheduleConfig, learning_rate

UPDATES = 1000


def rate_at(config: ScheduleConfig, *, update: int, updates: int, streams: int) -> float:
    """The learning rate of an update of a run whose length is given in updates."""
    return learning_rate(config, update=update, progress=Progress(update, updates), streams=streams)


def formula(t: int, n: float, base: float = 1e-4) -> float:
    """The schedule of Chen et al. 2018 as in the docstring of `learning_rate`, with u = 1000."""
    s, e, warmup = 0.4 * UPDATES, 2.0 * UPDATES, min(10_000, 0.1 * UPDATES)
    return base * max(0.5, min(1 + t * (n - 1) / warmup, n, n * (2 * n) ** ((s - t) / (e - s))))


@pytest.mark.parametrize(("streams", "n"), [(128, 1), (768, 6), (3072, 24), (192, 1.5)])
def test_the_published_schedule(streams: int, n: float) -> None:
    config = ScheduleConfig()
    for update in range(0, UPDATES, 7):
        rate = rate_at(config, update=update, updates=UPDATES, streams=streams)
        assert rate == pytest.approx(formula(update, n), rel=1e-12)


def test_the_shape_by_hand() -> None:
    rates = [rate_at(ScheduleConfig(), update=t, updates=UPDATES, streams=768) for t in range(UPDATES + 1)]
    assert rates[0] == pytest.approx(1e-4)
    assert rates[50] == pytest.approx(3.5e-4)  # halfway from 1 to 6
    assert rates[100] == rates[250] == rates[400] == pytest.approx(6e-4)
    assert rates[1000] == pytest.approx(6e-4 * 12 ** (-600 / 1600))
    assert all(later < earlier for earlier, later in pairwise(rates[400:]))


@pytest.mark.parametrize("streams", [1, 8, 127])
def test_few_streams_are_as_one_workers(streams: int) -> None:
    for update in range(0, UPDATES, 50):
        few = rate_at(ScheduleConfig(), update=update, updates=UPDATES, streams=streams)
        assert few == pytest.approx(formula(update, 1))


def test_it_never_falls_under_half_the_base() -> None:
    config = ScheduleConfig(decay_start=0.1, decay_end=0.2)
    rates = [rate_at(config, update=t, updates=UPDATES, streams=768) for t in range(UPDATES)]
    assert min(rates) == rates[-1] == 0.5e-4
    free = ScheduleConfig(decay_start=0.1, decay_end=0.2, minimum=0.0)
    assert rate_at(free, update=999, updates=UPDATES, streams=768) < 1e-9


def test_warm_up_takes_the_smaller_of_updates_and_fraction() -> None:
    def rate(update: int, updates: int, **settings: float) -> float:
        return rate_at(ScheduleConfig(**settings), update=update, updates=updates, streams=256)

    assert rate(5_000, 1_000_000) == pytest.approx(1.5e-4)  # 10,000 updates
    assert rate(5_000, 1_000_000, warmup_updates=5_000) == pytest.approx(2e-4)
    assert rate(5, 100) == pytest.approx(1.5e-4)  # a tenth of 100
    assert rate(5, 100, warmup_fraction=0.05) == pytest.approx(2e-4)


def test_linear_ends() -> None:
    config = ScheduleConfig(linear_warmup_updates=10, linear_cooldown=0.2)
    plain = ScheduleConfig()

    def ratio(update: int) -> float:
        rates = [rate_at(c, update=update, updates=UPDATES, streams=768) for c in (config, plain)]
        return rates[0] / rates[1]

    assert [ratio(update) for update in (0, 4, 9, 10, 799, 800)] == pytest.approx([0.1, 0.5, 1, 1, 1, 1])
    assert [ratio(update) for update in (900, 999, 1000)] == pytest.approx([0.5, 0.005, 0])


def test_a_decay_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InputError, match="decay_end"):
        ScheduleConfig(decay_start=0.5, decay_end=0.5)


@pytest.mark.parametrize("done", [0.0, 13.0, 100.0, 250.0, 999.0])
def test_with_a_time_limit_the_rate_follows_the_share_of_the_time(done: float) -> None:
    config = ScheduleConfig(linear_cooldown=0.3, warmup_updates=10**9)
    by_updates = learning_rate(config, update=10, progress=Progress(done, UPDATES), streams=768)
    by_seconds = learning_rate(config, update=10, progress=Progress(2.5 * done, 2.5 * UPDATES), streams=768)
    assert by_seconds == pytest.approx(by_updates)


def test_each_tenth_is_reached_by_the_first_update_that_is_not_before_it() -> None:
    for updates in range(1, 300):
        tenths = [Progress(update, updates).tenths for update in range(updates + 1)]
        reached = [update for update in range(1, updates + 1) if tenths[update] > tenths[update - 1]]
        assert reached == sorted({-(-tenth * updates // 10) for tenth in range(1, 11)})
        assert Progress(updates, updates).is_over
        assert not Progress(updates - 1, updates).is_over


@settings(max_examples=300, deadline=None)
@given(
    start=st.floats(0, 1e6, exclude_max=True),
    above=st.sampled_from([1e-16, 1e-9, 1e-3, 1.0, 1e5]),
    others=st.fixed_dictionaries(
        {
            "base": st.floats(0, 1e6, exclude_min=True),
            "streams_per_worker": st.integers(1, 10**12),
            "warmup_updates": st.integers(1, 10**12),
            "warmup_fraction": st.floats(0, 1, exclude_min=True),
            "minimum": st.floats(0, 1),
            "linear_warmup_updates": st.integers(0, 10**12),
            "linear_cooldown": st.floats(0, 1),
        }
    ),
    updates=st.integers(1, 10**9 - 1),
    share=st.floats(0, 1, exclude_max=True),
    streams=st.integers(1, 10**9),
)
def test_every_rate_of_every_possible_schedule_is_finite(
    start: float, above: float, others: dict[str, Any], updates: int, share: float, streams: int
) -> None:
    config = ScheduleConfig(decay_start=start, decay_end=min(1e6, max(start + above, nextafter(start, inf))), **others)
    check_settings(config, "schedule.{}".format)
    rate = rate_at(config, update=int(share * updates), updates=updates, streams=streams)
    assert isfinite(rate)
    assert rate >= 0
