"""Schedule: the learning rate is that of the formula."""

from math import inf, isfinite, nextafter
from typing import Any

import pytest
from elmoc.settings import checked
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain.optimiser import Progress, ScheduleConfig, learning_rate

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


def test_it_never_falls_under_half_the_base() -> None:
    config = ScheduleConfig(decay_start=0.1, decay_end=0.2)
    rates = [rate_at(config, update=t, updates=UPDATES, streams=768) for t in range(UPDATES)]
    assert min(rates) == rates[-1] == 0.5e-4
    free = ScheduleConfig(decay_start=0.1, decay_end=0.2, minimum=0.0)
    assert rate_at(free, update=999, updates=UPDATES, streams=768) < 1e-9


def test_linear_ends() -> None:
    config = ScheduleConfig(linear_warmup_updates=10, linear_cooldown=0.2)
    plain = ScheduleConfig()

    def ratio(update: int) -> float:
        rates = [rate_at(c, update=update, updates=UPDATES, streams=768) for c in (config, plain)]
        return rates[0] / rates[1]

    assert [ratio(update) for update in (0, 4, 9, 10, 799, 800)] == pytest.approx([0.1, 0.5, 1, 1, 1, 1])
    assert [ratio(update) for update in (900, 999, 1000)] == pytest.approx([0.5, 0.005, 0])


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
    checked(config)
    rate = rate_at(config, update=int(share * updates), updates=updates, streams=streams)
    assert isfinite(rate)
    assert rate >= 0
