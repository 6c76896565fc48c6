"""Run directories: what another run has left in one is neither written over nor taken for this run's."""

import shutil
from collections.abc import Callable
from pathlib import Path

from pretrain.run.directory import RunDirectory
from tests.pretrain.conftest import TinyRuns

Fails = Callable[[int], str]


def test_what_a_run_has_left_is_not_written_over(runs: TinyRuns, error_line: Fails) -> None:
    run = runs.run("run")
    run.config.unlink()
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    of_another = "is of another run: move what it has left there, or choose another directory"
    assert error_line(runs.status("run")) == f"error: {run.checkpoint_path(12)} {of_another}"
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    shutil.rmtree(run.checkpoints)
    assert error_line(runs.status("run")) == f"error: {run.metrics} {of_another}"
    run.metrics.unlink()
    model = {path: path.read_bytes() for path in run.model.iterdir()}
    assert error_line(runs.status("run")) == f"error: {run.model} {of_another}"
    assert {path: path.read_bytes() for path in run.model.iterdir()} == model


def test_a_model_directory_is_no_run_directory(runs: TinyRuns, error_line: Fails) -> None:
    model = runs.run("run", train__updates=1).model
    for options in ([], ["--resume"]):
        said = error_line(runs.status("run/model", *options))
        assert said.startswith(f"error: {model} is a model directory: choose another directory for the run (")


def test_the_checkpoint_that_was_just_written_is_kept(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.checkpoints.mkdir()
    for update in (12, 3):
        run.save(update, {"update": update}, keep=1, best=None)
    assert run.checkpoint_path(3) in run.checkpoint_paths()
