"""Resuming: a run that was killed or stopped, wherever that was, ends as if nothing had happened."""

import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from elmoc.corpus import Corpus
from pretrain.run.directory import RunDirectory, read_metrics
from pretrain.train_state import TrainState
from tests.conftest import Fails
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint, signalled
from tests.warm import WarmProcess

from elmoc.encoders import DIRECTIONS

UPDATES, EVERY = 60, 5
LONG = {
    "train__updates": UPDATES,
    "train__window": 4,
    "log__checkpoint_updates": EVERY,
    "log__keep": 3,
    "log__every_updates": EVERY,
    "evaluation__every_updates": 20,
    "encoder__dropout": 0.2,
}


@pytest.fixture(scope="module")
def whole(module_runs: TinyRuns) -> RunDirectory:
    """The same run without any interruption."""
    return module_runs.run("whole", **LONG)


def assert_same_end(run: RunDirectory, whole: RunDirectory) -> None:
    """The run has the checkpoint (but for the clock), the evaluations and the model of the whole one."""
    assert last_checkpoint(run)["update"] == UPDATES
    assert_same(last_checkpoint(run), last_checkpoint(whole), but=("seconds", "metrics_bytes"))
    assert read_metrics(run.path, "evaluation") == read_metrics(whole.path, "evaluation")
    for name in ("model.safetensors", "heads.safetensors"):
        assert (run.model / name).read_bytes() == (whole.model / name).read_bytes()
    assert [path for path in run.path.rglob("*") if path.name.startswith(".")] == [], "nothing is left over"


def run_until(runs: TinyRuns, number: int, event: int, *options: str) -> WarmProcess:
    """The run in a process that sends itself a signal before an event; it has ended."""
    words = signalled(number, event, runs.arguments("killed", *options, **LONG))
    process = WarmProcess(words, log=runs.folder / "process")
    process.wait()
    return process


def test_killed_anywhere_twice_and_resumed(runs: TinyRuns, whole: RunDirectory) -> None:
    chosen = random.SystemRandom()
    events = chosen.choice([4, chosen.randint(4, 60)]), chosen.randint(3, 15)  # up to the third there is no config yet
    for event, options in zip(events, ((), ("--resume",)), strict=True):
        assert run_until(runs, signal.SIGKILL, event, *options).poll() == -signal.SIGKILL, events
    run = runs.run("killed", "--resume", **LONG)
    assert_same_end(run, whole)
    for left, right in zip(read_metrics(run.path, "train"), read_metrics(whole.path, "train"), strict=True):
        del left["words_per_second"], right["words_per_second"]
        assert left == right


def test_signals_save_first_and_the_resumed_run_ends_the_same(runs: TinyRuns, whole: RunDirectory) -> None:
    run, reached = RunDirectory(runs.folder / "killed"), 0
    for number, options in ((signal.SIGTERM, ()), (signal.SIGINT, ("--resume",))):
        process = run_until(runs, number, 20, *options)
        assert process.poll() == 128 + number, "so that what is chained to it does not start"
        assert process.stderr.endswith(": give the same command again, with --resume if it had begun\n")
        assert "Traceback" not in process.stderr
        before, reached = reached, last_checkpoint(run)["update"]
        assert before < reached < UPDATES
    runs.run("killed", "--resume", **LONG)
    assert_same_end(run, whole)


@pytest.fixture(scope="module")
def done(module_runs: TinyRuns) -> RunDirectory:
    """A run of twelve updates, with checkpoints after 0, 6 and 12 of them."""
    return module_runs.run("done", log__checkpoint_updates=6)


@pytest.fixture
def run(runs: TinyRuns, done: RunDirectory) -> RunDirectory:
    """A copy of that run."""
    shutil.copytree(done.path, runs.folder / "run")
    return RunDirectory(runs.folder / "run")


def files_of(run: RunDirectory) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_run_goes_on_from_any_checkpoint_or_starts_again(
    runs: TinyRuns, run: RunDirectory, done: RunDirectory, kept: int
) -> None:
    for path in run.checkpoint_paths()[kept:]:
        path.unlink()
    for path in (
        run.checkpoints / ".13.pt.partial",
        run.checkpoints / ".13.pt.lock",
        run.path / ".model.partial" / "config.json",
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    runs.run("run", "--resume")
    assert_same(last_checkpoint(run), last_checkpoint(done), but=("seconds", "metrics_bytes"))
    assert read_metrics(run.path, "evaluation") == read_metrics(done.path, "evaluation")
    assert [path for path in run.path.rglob("*") if path.name.startswith(".")] == [], "what was half written is gone"


def test_a_finished_run_stays_as_it_is(
    runs: TinyRuns, run: RunDirectory, error_line: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(run)
    error = error_line(runs.status("run", "--resume", train__updates=13, encoder__dropout=0.3))
    assert "train.updates (was 12, is 13)" in error
    assert "encoder.dropout (was 0.1, is 0.3)" in error
    assert "log." not in error
    runs.run("run", "--resume")
    assert files_of(run) == before
    assert f"to train on, start a new run with --init-from {run.path}" in capsys.readouterr().out


def test_resume_may_log_differently(runs: TinyRuns, run: RunDirectory) -> None:
    run.checkpoint_path(12).unlink()
    runs.run("run", "--resume", log__keep=2, log__every_updates=1, log__checkpoint_updates=4, train__threads=1)
    assert [line["update"] for line in read_metrics(run.path, "train")] == [4, *range(7, 13)]
    assert [int(path.stem) for path in run.checkpoint_paths()][-2:] == [8, 12]
    assert run.checkpoint_path(6) not in run.checkpoint_paths()


def test_started_again_it_starts_from_the_same_model(
    runs: TinyRuns, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.folder)
    second = runs.run("second", "--init-from=run", train__seed=3)
    end = last_checkpoint(second)
    for path in second.checkpoint_paths():
        path.unlink()
    monkeypatch.chdir("/")
    runs.run("second", "--resume", train__seed=3)
    assert_same(last_checkpoint(second), end, but=("seconds", "metrics_bytes"))


def test_data_that_has_moved_is_taken_where_it_is_now(
    runs: TinyRuns, run: RunDirectory, done: RunDirectory, tiny_corpus: Corpus, tmp_path: Path
) -> None:
    run.checkpoint_path(12).unlink()
    shutil.copytree(tiny_corpus.path, tmp_path / "moved")
    runs.run("run", "--resume", data__corpus=str(tmp_path / "moved"))
    assert read_metrics(run.path, "evaluation") == read_metrics(done.path, "evaluation")
    assert_same(last_checkpoint(run), last_checkpoint(done), but=("seconds", "metrics_bytes"))


def test_resumed_on_another_kind_of_device_masks_go_on_from_a_new_seed(
    runs: TinyRuns, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(state: TrainState, checkpoint: dict[str, Any], **options: Any) -> None:
        load(state, checkpoint, **options)
        found.update({name: generator.get_state() for name, generator in state.generators.items()})

    seed, found = runs.setup().config.train.seed, dict[str, torch.Tensor]()
    run.checkpoint_path(12).unlink()
    values = last_checkpoint(run)
    assert values["update"] == 6
    values["device"] = "cuda"
    values["generators"] = {name: torch.zeros(16, dtype=torch.uint8) for name in values["generators"]}
    torch.save(values, run.checkpoint_path(6))
    load = TrainState.load
    monkeypatch.setattr(TrainState, "load", noted)
    runs.run("run", "--resume")
    expected = {name: torch.Generator().manual_seed(2 * seed + index + 6) for index, name in enumerate(DIRECTIONS)}
    assert_same(found, {name: generator.get_state() for name, generator in expected.items()})
    assert last_checkpoint(run)["update"] == 12
