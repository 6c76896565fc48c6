"""Progress by `--max-time`: it is the share of the time that is over, whatever length the config gives."""

import pytest

from pretrain.evaluation import evaluate
from pretrain.run import recorder
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns, last_checkpoint

BY_TIME = {"schedule__linear_cooldown": 1.0, "log__every_updates": 1}


@pytest.mark.parametrize("updates", [2, 10_000_000])
def test_a_time_limit_sets_the_length(runs: TinyRuns, updates: int) -> None:
    run = runs.run("run", "--max-time=1.5s", train__updates=updates, **BY_TIME)
    train, evaluations = read_metrics(run.path, "train"), read_metrics(run.path, "evaluation")
    assert 2 < train[-1]["update"] == evaluations[-1]["update"] < 10_000
    assert 1.3 < last_checkpoint(run)["seconds"] < 5
    rates = [line["learning_rate"] for line in train]
    assert rates == sorted(rates, reverse=True), "by a falling rate"
    assert rates[-1] < 0.2 * rates[0]
    assert 2 <= len(evaluations) <= 11


def test_a_stopped_run_goes_on_at_its_share_of_the_time(runs: TinyRuns) -> None:
    """Killed at about half of the time, it does the rest of the time, also without `--max-time`."""
    settings = {"train__updates": 10**6, "log__checkpoint_updates": 1, "log__keep": 10**6, **BY_TIME}
    run = runs.run("run", "--max-time=2s", **settings)
    half = last_checkpoint(run)["update"] // 2
    for path in run.checkpoint_paths():
        if int(path.stem) > half:
            path.unlink()
    before = last_checkpoint(run)
    rates = [line["learning_rate"] for line in read_metrics(run.path, "train")[:half]]
    runs.run("run", "--resume", **settings)
    assert before["max_seconds"] == 2.0
    assert before["seconds"] < last_checkpoint(run)["seconds"] < 6
    train = read_metrics(run.path, "train")
    assert [line["learning_rate"] for line in train[:half]] == rates
    assert train[half]["learning_rate"] < rates[-1]


def test_slow_evaluations_read_fewer_words(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words: list[int] = []

    def noted(*arguments: object, **options: object) -> dict[str, float]:
        words.append(options["words"])  # type: ignore[arg-type]
        clock[0] += 0.01 * words[-1]  # seconds of an evaluation, beside those of the run
        return evaluate(*arguments, **options)  # type: ignore[arg-type]

    clock, monotonic = [0.0], recorder.time.monotonic
    monkeypatch.setattr(recorder, "evaluate", noted)
    monkeypatch.setattr(recorder.time, "monotonic", lambda: monotonic() + clock[0])
    runs.run("run", "--max-time=5s", train__updates=10**6)
    assert words[0] == 100
    assert len(set(words[1:])) == 1
    assert 1 <= words[1] <= 4, "at most a tenth of the time for eleven of them"
    assert capsys.readouterr().out.count("held-out words in place of 100") == 1
