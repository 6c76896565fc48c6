"""Resuming: a run that was killed or stopped, wherever that was, ends as if nothing had happened."""

import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.encoders import DIRECTIONS
from pretrain.run.directory import RunDirectory, read_metrics
from pretrain.train_state import TrainState
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint
from tests.warm import WarmProcess

UPDATES, EVERY = 200, 10
LONG = {
    "train__updates": UPDATES,
    "train__window": 4,
    "log__checkpoint_updates": EVERY,
    "log__keep": 3,
    "log__every_updates": EVERY,
    "evaluation__every_updates": 50,
    "encoder__dropout": 0.2,
}
Fails = Callable[[int], str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Corpus) -> RunDirectory:
    """The same run without any interruption."""
    return TinyRuns(tmp_path_factory.mktemp("whole"), tiny_corpus.path).run("whole", **LONG)


def start(runs: TinyRuns, *options: str, log: str = "process", **settings: Any) -> WarmProcess:
    """Start `python -m pretrain` as users do, with one thread, as this process has."""
    return WarmProcess(["-m", "pretrain", *runs.arguments("killed", *options, **settings)], log=runs.folder / log)


def wait_for_checkpoint(run: RunDirectory, process: WarmProcess, update: int) -> None:
    """Wait until a checkpoint of `update` or a later one is there."""
    while not any(int(path.stem) >= update for path in run.checkpoint_paths()):
        assert process.poll() is None, process.stderr
        time.sleep(0.002)


def assert_same_end(run: RunDirectory, whole: RunDirectory) -> None:
    """The run has the checkpoint (but for the clock), the evaluations and the model of the whole one."""
    assert last_checkpoint(run)["update"] == UPDATES
    assert_same(last_checkpoint(run), last_checkpoint(whole), but=("seconds", "metrics_bytes"))
    assert read_metrics(run.path, "evaluation") == read_metrics(whole.path, "evaluation")
    for name in ("model.safetensors", "heads.safetensors"):
        assert (run.model / name).read_bytes() == (whole.model / name).read_bytes()
    assert [path for path in run.path.rglob("*") if path.name.startswith(".")] == [], "nothing is left over"


def test_killed_twice_at_random_moments_and_resumed(runs: TinyRuns, whole: RunDirectory) -> None:
    run = RunDirectory(runs.folder / "killed")
    delays = random.SystemRandom()
    reached = 0
    for options in ((), ("--resume",)):
        process = start(runs, *options, **LONG)
        wait_for_checkpoint(run, process, reached + EVERY)
        time.sleep(delays.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "the run had ended before it was killed"
        reached = int(run.checkpoint_paths()[-1].stem)
        assert reached < UPDATES
    runs.run("killed", "--resume", **LONG)
    assert_same_end(run, whole)
    for left, right in zip(read_metrics(run.path, "train"), read_metrics(whole.path, "train"), strict=True):
        del left["words_per_second"], right["words_per_second"]
        assert left == right


def test_signals_save_first_and_the_resumed_run_ends_the_same(runs: TinyRuns, whole: RunDirectory) -> None:
    run = RunDirectory(runs.folder / "killed")
    reached = 0
    for number, options in ((signal.SIGTERM, ()), (signal.SIGINT, ("--resume",))):
        process = start(runs, *options, **LONG)
        wait_for_checkpoint(run, process, reached + EVERY)
        process.send_signal(number)
        assert process.wait() == 130, "so that what is chained to it does not start"
        assert "Traceback" not in process.stderr
        assert "stopped after saving" in process.stdout
        before, reached = reached, last_checkpoint(run)["update"]
        assert before + EVERY <= reached < UPDATES
    runs.run("killed", "--resume", **LONG)
    assert_same_end(run, whole)


def test_killed_before_the_first_checkpoint_a_run_starts_again(runs: TinyRuns) -> None:
    undisturbed = runs.run("undisturbed")
    run = runs.run("run")
    for path in run.checkpoint_paths():
        path.unlink()
    runs.run("run", "--resume")
    assert_same(last_checkpoint(undisturbed), last_checkpoint(run), but=("seconds", "metrics_bytes"))
    assert read_metrics(run.path, "evaluation") == read_metrics(undisturbed.path, "evaluation")


def test_what_a_killed_process_left_half_written_is_removed(runs: TinyRuns) -> None:
    run = runs.run("run", log__checkpoint_updates=5)
    for path in (run.checkpoints / ".000000013.pt.partial", run.path / ".model.partial" / "config.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    run.checkpoint_paths()[-1].unlink()
    runs.run("run", "--resume", log__checkpoint_updates=5)
    assert last_checkpoint(run)["update"] == 12
    assert [path for path in run.path.rglob("*") if path.name.startswith(".")] == []


def test_a_finished_run_stays_as_it_is(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.run("run")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    runs.run("run", "--resume")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    out = capsys.readouterr().out
    assert out.count("done: the model is in") == 2
    assert out.count(f"{run.path} is finished") == 1, "said of the run that was finished before"


def test_resume_with_other_settings_names_them(runs: TinyRuns, error_line: Fails) -> None:
    runs.run("run")
    error = error_line(runs.status("run", "--resume", train__updates=13, encoder__dropout=0.3))
    assert "train.updates (was 12, is 13)" in error
    assert "encoder.dropout (was 0.1, is 0.3)" in error
    assert "log." not in error


def test_resume_may_log_differently(runs: TinyRuns) -> None:
    run = runs.run("run", log__checkpoint_updates=6, log__keep=9)
    run.checkpoint_path(12).unlink()
    runs.run("run", "--resume", log__keep=2, log__every_updates=1, log__checkpoint_updates=4, train__threads=1)
    assert [line["update"] for line in read_metrics(run.path, "train")] == [4, *range(7, 13)]
    assert [int(path.stem) for path in run.checkpoint_paths()][-2:] == [8, 12]
    assert run.checkpoint_path(6) not in run.checkpoint_paths()


def test_a_checkpoint_of_update_0_is_gone_on_from_without_a_second_evaluation(runs: TinyRuns) -> None:
    undisturbed = runs.run("run", log__keep=99)
    evaluations = read_metrics(undisturbed.path, "evaluation")
    for path in undisturbed.checkpoint_paths()[1:]:
        path.unlink()
    assert [path.stem for path in undisturbed.checkpoint_paths()] == ["000000000"]
    runs.run("run", "--resume", log__keep=99)
    assert read_metrics(undisturbed.path, "evaluation") == evaluations


def test_killed_before_the_first_checkpoint_the_model_it_started_from_is_not_forgotten(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.run("first")
    monkeypatch.chdir(runs.folder)
    undisturbed = runs.run("undisturbed", "--init-from=first", train__seed=3)
    run = runs.run("run", "--init-from=first", train__seed=3)
    monkeypatch.chdir("/")
    for path in run.checkpoint_paths():
        path.unlink()
    runs.run("run", "--resume", train__seed=3)
    assert_same(last_checkpoint(undisturbed), last_checkpoint(run), but=("seconds", "metrics_bytes"))


HOLD = """
import signal, sys
from pretrain.run.directory import RunDirectory
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
with RunDirectory(sys.argv[1]).locked():
    print("locked", flush=True)
    signal.sigwait({signal.SIGTERM})
"""


@contextmanager
def trained_by_another(run: RunDirectory) -> Iterator[None]:
    """While the block runs, another process has the run directory."""
    process = WarmProcess(["-c", HOLD, str(run.path)], log=run.path.with_name("holding"))
    while process.stdout != "locked\n":
        assert process.poll() is None, process.stderr
        time.sleep(0.005)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def test_a_run_that_is_going_on_cannot_be_resumed_beside_it(runs: TinyRuns, error_line: Fails) -> None:
    run = runs.run("run", log__keep=1)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with trained_by_another(run):
        error = error_line(runs.status("run", "--resume", log__keep=1))
        assert error == f"error: another process is writing {run.config}: wait for it, or stop it"
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    runs.run("run", "--resume", log__keep=1)


def test_data_that_has_moved_is_taken_where_it_is_now(runs: TinyRuns, tiny_corpus: Corpus, tmp_path: Path) -> None:
    run = runs.run("run")
    evaluations, end = read_metrics(run.path, "evaluation"), last_checkpoint(run)
    for path in run.checkpoint_paths()[1:]:
        path.unlink()
    shutil.copytree(tiny_corpus.path, tmp_path / "moved")
    runs.run("run", "--resume", data__corpus=str(tmp_path / "moved"))
    assert read_metrics(run.path, "evaluation") == evaluations
    assert_same(last_checkpoint(run), end, but=("seconds", "metrics_bytes"))


def test_resumed_on_another_kind_of_device_masks_go_on_from_a_new_seed(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(state: TrainState, checkpoint: dict[str, Any], **options: Any) -> None:
        load(state, checkpoint, **options)
        found.update({name: generator.get_state() for name, generator in state.generators.items()})

    settings = {"train__seed": 5, "log__checkpoint_updates": 6, "log__keep": 9}
    run, found = runs.run("run", **settings), dict[str, torch.Tensor]()
    run.checkpoint_path(12).unlink()
    values = last_checkpoint(run)
    assert values["update"] == 6
    values["device"] = "cuda"
    values["generators"] = {name: torch.zeros(16, dtype=torch.uint8) for name in values["generators"]}
    torch.save(values, run.checkpoint_path(6))
    load = TrainState.load
    monkeypatch.setattr(TrainState, "load", noted)
    runs.run("run", "--resume", **settings)
    expected = {name: torch.Generator().manual_seed(2 * 5 + index + 6) for index, name in enumerate(DIRECTIONS)}
    assert_same(found, {name: generator.get_state() for name, generator in expected.items()})
    assert last_checkpoint(run)["update"] == 12
