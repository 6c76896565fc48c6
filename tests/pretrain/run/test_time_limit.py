"""`--max-time`: it sets the length of a run, whenever it is given, and says where it comes too late or is too short."""

from collections.abc import Callable
from itertools import count, cycle, pairwise

import pytest

from pretrain.__main__ import parse_duration
from pretrain.run.clock import Clock, Length
from pretrain.run.directory import read_metrics
from pretrain.schedule import ScheduleConfig, learning_rate
from tests.pretrain.conftest import TinyRuns, last_checkpoint


@pytest.mark.parametrize("updates", [2, 10_000_000])
def test_a_time_limit_sets_the_length(runs: TinyRuns, updates: int) -> None:
    run = runs.run("run", "--max-time", "1.5s", train__updates=updates, log__every_updates=1)
    last = read_metrics(run.path, "train")[-1]
    assert last["update"] == last_checkpoint(run)["updates"] > 8
    assert read_metrics(run.path, "evaluation")[-1]["update"] == last["update"]
    expected = learning_rate(ScheduleConfig(base=0.01), update=last["update"] - 1, updates=last["update"], streams=4)
    assert last["learning_rate"] == pytest.approx(expected), "the schedule is that of the length which fits"


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["60", "m", "0s", "-5m", "5 m", "1h30m", "3651d", f"{'9' * 400}s"])
def test_what_is_no_duration(runs: TinyRuns, error_line: Callable[[int], str], text: str) -> None:
    assert "--max-time takes a number and one of s, m, h, d" in error_line(runs.status("run", f"--max-time={text}"))
    assert not (runs.folder / "run").exists()


def test_a_time_limit_after_the_end_is_answered_with_what_goes_on_from_there(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.run("run", log__checkpoint_updates=5, log__keep=2, evaluation__every_updates=5)
    runs.run("run", "--resume", "--max-time=1h", log__checkpoint_updates=5, evaluation__every_updates=5)
    printed = capsys.readouterr().out
    assert f"{run.path} is finished: to train it longer, start a new run" in printed
    assert "--max-time" not in printed
    for path in run.checkpoint_paths()[-1:]:
        path.unlink()
    runs.run("run", "--resume", "--max-time=1h", log__checkpoint_updates=5, evaluation__every_updates=5)
    assert "--max-time comes too late: the learning rate is falling" in capsys.readouterr().out


def test_a_time_limit_does_not_train_a_short_run_that_is_finished(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.run("run", train__updates=5)
    before = (run.model / "model.safetensors").read_bytes()
    runs.run("run", "--resume", "--max-time=1h", train__updates=5)
    assert f"{run.path} is finished" in capsys.readouterr().out
    assert (run.model / "model.safetensors").read_bytes() == before


def test_a_time_limit_does_not_come_too_late_for_a_new_run(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run("run", "--max-time", "1s", schedule__linear_cooldown=1)
    assert "comes too late" not in capsys.readouterr().out


@pytest.mark.parametrize("stopped", [3, 9])
def test_a_time_limit_sets_the_length_of_a_short_run_that_was_stopped_at_its_start(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stopped: int
) -> None:
    monkeypatch.setattr(Clock, "length_within_limit", lambda *_, **__: Length(30 - 11, 0.0, 0.0, 0))
    run = runs.run("run", train__updates=20, log__checkpoint_updates=stopped, log__keep=9)
    for path in run.checkpoint_paths():
        if int(path.stem) > stopped:
            path.unlink()
    runs.run("run", "--resume", "--max-time=1h", train__updates=20, log__checkpoint_updates=stopped, log__keep=9)
    came_too_late = "--max-time comes too late" in capsys.readouterr().out
    assert (last_checkpoint(run)["updates"], came_too_late) == ((30, False) if stopped == 3 else (20, True))


def test_evaluations_that_exceed_a_time_limit_are_named_once(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Clock, "record_evaluation", lambda self, seconds: setattr(self, "longest_evaluation", 100.0))
    runs.run("run", "--max-time=1s")
    told = "evaluations of 100.0 s each take longer than --max-time allows: the run will end about"
    printed = capsys.readouterr()
    lines = [line for line in (printed.out + printed.err).splitlines() if told in line]
    assert len(lines) == 1
    assert lines[0].startswith(told), "above the progress bar, not behind it"


def test_evaluations_are_not_passed_over_while_a_time_limit_sets_the_length(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = (Length(end - update, 0.0, 0.0, 0) for update, end in zip(count(3, 3), cycle([110, 90, 100])))
    monkeypatch.setattr(Clock, "may_set_length", lambda self, update, updates, share: update % 3 == 0 and update < 40)
    monkeypatch.setattr(Clock, "length_within_limit", lambda *_, **__: next(lengths))
    run = runs.run("run", "--max-time=1h", train__updates=10**6, evaluation__every_updates=0)
    updates = [line["update"] for line in read_metrics(run.path, "evaluation")]
    assert updates[-1] == last_checkpoint(run)["updates"]
    assert len(updates) in (10, 11, 12)
    assert max(after - before for before, after in pairwise(updates)) <= 15
