"""Progress by `--max-time`: it is the share of the time that is over, whatever length the config gives."""

from collections.abc import Callable
from itertools import chain, count, pairwise, repeat
from types import SimpleNamespace

import pytest
from pretrain.evaluation import evaluate
from pretrain.run.directory import read_metrics
from pretrain.step import TrainStep
from tests.pretrain.conftest import TinyRuns, last_checkpoint
from tqdm import tqdm

from pretrain import train
from pretrain.run import recorder

BY_TIME = {"train__updates": 10**6, "schedule__linear_cooldown": 1.0, "log__every_updates": 1}


@pytest.fixture(autouse=True)
def spend(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The clock of runs goes on by 0.01 s whenever an update looks at it, which is three times; spends more."""
    ticks, more = count(), [0.0]
    monkeypatch.setattr(train, "time", SimpleNamespace(monotonic=lambda: 0.01 * next(ticks) + more[0]))
    monkeypatch.setattr(recorder, "time", SimpleNamespace(monotonic=lambda: more[0], time=lambda: more[0]))

    def spend(seconds: float) -> None:
        more[0] += seconds

    return spend


@pytest.mark.parametrize("updates", [2, 10_000_000])
def test_a_time_limit_sets_the_length(runs: TinyRuns, updates: int) -> None:
    run = runs.run("run", "--max-time=1s", **BY_TIME | {"train__updates": updates})
    lines, evaluations = read_metrics(run.path, "train"), read_metrics(run.path, "evaluation")
    assert 15 < lines[-1]["update"] == evaluations[-1]["update"] < 35
    assert 1 <= last_checkpoint(run)["seconds"] < 1.1
    rates = [line["learning_rate"] for line in lines]
    assert rates == sorted(rates, reverse=True), "by a falling rate"
    assert rates[-1] < 0.2 * rates[0]
    assert len(evaluations) == 11


def test_a_stopped_run_goes_on_at_its_share_of_the_time(runs: TinyRuns) -> None:
    """Killed at about half of the time, it does the rest of the time, also without `--max-time`."""
    settings = BY_TIME | {"log__checkpoint_updates": 1, "log__keep": 10**6}
    run = runs.run("run", "--max-time=1s", **settings)
    half = last_checkpoint(run)["update"] // 2
    for path in run.checkpoint_paths():
        if int(path.stem) > half:
            path.unlink()
    before = last_checkpoint(run)
    rates = [line["learning_rate"] for line in read_metrics(run.path, "train")[:half]]
    runs.run("run", "--resume", **settings)
    assert before["max_seconds"] == 1.0
    assert before["seconds"] < 0.75 < 1 <= last_checkpoint(run)["seconds"] < 1.1
    lines = read_metrics(run.path, "train")
    assert [line["learning_rate"] for line in lines[:half]] == rates
    assert lines[half]["learning_rate"] < rates[-1]


def test_a_longer_time_is_evaluated_at_its_own_tenths(runs: TinyRuns) -> None:
    run = runs.run("run", "--max-time=1s", **BY_TIME, log__checkpoint_updates=1, log__keep=10**6)
    half = last_checkpoint(run)["update"] // 2
    for path in run.checkpoint_paths()[half + 1 :]:
        path.unlink()
    runs.run("run", "--resume", "--max-time=4s", **BY_TIME)
    updates = [line["update"] for line in read_metrics(run.path, "evaluation")]
    assert 8 <= sum(update > half for update in updates) <= 9, "from about an eighth of the time on"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, spend: Callable[[float], None]) -> Callable[..., None]:
    """Given seconds: evaluations take so many more in turn, later ones as many as the last."""

    def take(*seconds: float) -> None:
        each = chain(seconds, repeat(seconds[-1]))

        def spent(*arguments: object, **options: object) -> dict[str, float]:
            spend(next(each))
            return evaluate(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(recorder, "evaluate", spent)

    return take


def test_slow_evaluations_are_fewer(runs: TinyRuns, slow: Callable[..., None]) -> None:
    slow(0.05)
    run = runs.run("run", "--max-time=2s", train__updates=10**6, log__every_updates=1000)
    evaluations = read_metrics(run.path, "evaluation")
    assert len(evaluations) == 5, "at the beginning, after three tenths each, and at the end"
    assert last_checkpoint(run)["seconds"] == pytest.approx(1.95, abs=0.03), "with the last evaluation it is two"
    assert evaluations[-1]["update"] == last_checkpoint(run)["update"] == read_metrics(run.path, "train")[0]["update"]


def test_a_first_evaluation_takes_no_time_of_the_run(runs: TinyRuns, slow: Callable[..., None]) -> None:
    slow(5)
    run = runs.run("run", "--max-time=1s", train__updates=10**6)
    assert last_checkpoint(run)["update"] > 15


def test_a_quicker_evaluation_is_not_made_again(runs: TinyRuns, slow: Callable[..., None]) -> None:
    slow(0.1, 0)
    run = runs.run("run", "--max-time=2s", train__updates=10**6)
    assert min(b["update"] - a["update"] for a, b in pairwise(read_metrics(run.path, "evaluation"))) > 4


def test_the_bar_shows_the_time_of_updates_alone(
    runs: TinyRuns, spend: Callable[[float], None], slow: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bars, update = [], TrainStep.__call__
    monkeypatch.setattr("tqdm.std.time", recorder.time.time)
    monkeypatch.setattr(recorder, "progress_bar", lambda **options: bars.append(tqdm(**options)) or bars[-1])
    monkeypatch.setattr(TrainStep, "__call__", lambda *given, **more: spend(0.01) or update(*given, **more))
    slow(100.0)
    runs.run("run", train__updates=12, evaluation__every_updates=5)
    assert bars[0].format_dict["elapsed"] == pytest.approx(0.12)
    assert bars[0].format_dict["rate"] is None, "it is the mean, n / elapsed"
