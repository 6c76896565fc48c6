"""Checkpoints: one that is damaged, or does not fit the run, is named before anything is changed."""

import shutil
from pathlib import Path

import pytest
import torch
from pretrain.run.directory import RunDirectory, read_checkpoint
from tests.conftest import Fails
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint

SETTINGS = {"log__checkpoint_updates": 5, "log__keep": 3, "log__every_updates": 3, "evaluation__every_updates": 4}


@pytest.fixture(scope="module")
def whole(module_runs: TinyRuns) -> RunDirectory:
    """A run of twelve updates, with checkpoints after some of them."""
    return module_runs.run("whole", **SETTINGS)


@pytest.fixture
def run(runs: TinyRuns, whole: RunDirectory) -> RunDirectory:
    """A copy of it as it was killed after update 10."""
    run = RunDirectory(runs.folder / "run")
    shutil.copytree(whole.path, run.path)
    run.checkpoint_path(12).unlink()
    assert [int(path.stem) for path in run.checkpoint_paths()[-2:]] == [8, 10]
    return run


def without_speed(run: RunDirectory) -> list[str]:
    return [line.split(', "words_per_second"')[0] for line in run.metrics.read_text().splitlines()]


def assert_same_end(run: RunDirectory, whole: RunDirectory) -> None:
    """All is as if the run had never been killed, the lines of its log included."""
    assert_same(last_checkpoint(run), last_checkpoint(whole), but=("seconds", "metrics_bytes"))
    assert without_speed(run) == without_speed(whole)


def test_a_line_of_the_log_covers_its_whole_interval_after_a_resume(
    runs: TinyRuns, run: RunDirectory, whole: RunDirectory
) -> None:
    assert len(last_checkpoint(run)["unlogged"]) == 1, "update 10, after the line of update 9"
    runs.run("run", "--resume", **SETTINGS)
    assert_same_end(run, whole)


def test_a_damaged_one_is_named_and_the_one_before_leads_to_the_same_end(
    runs: TinyRuns, run: RunDirectory, whole: RunDirectory, error_line: Fails
) -> None:
    _, damaged = run.checkpoint_paths()
    content = damaged.read_bytes()
    before = {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    for wrong in (content[:5000] + bytes([content[5000] ^ 1]) + content[5001:], content[:5000], b""):
        damaged.write_bytes(wrong)
        assert str(damaged) in error_line(runs.status("run", "--resume", **SETTINGS))
        before[damaged] = wrong
        assert {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()} == before
    damaged.unlink()
    runs.run("run", "--resume", **SETTINGS)
    assert_same_end(run, whole)


def test_another_version_another_file_and_a_damaged_record_are_named(
    runs: TinyRuns, run: RunDirectory, error_line: Fails
) -> None:
    other, path = run.checkpoint_paths()
    other.unlink()
    whole = last_checkpoint(run)
    contents = [{"weights": torch.zeros(3)}, torch.zeros(3), whole | {"version": 2}]
    contents += [whole | {name: "wrong"} for name in ("data", "metrics_bytes", "unlogged", "position", "encoder")]
    contents += [{name: whole[name] for name in whole if name != missing} for missing in ("unlogged", "recurrent")]
    for content in contents:
        torch.save(content, path)
        assert str(path) in error_line(runs.status("run", "--resume", **SETTINGS))


def test_the_newest_the_best_and_the_one_just_written_are_kept(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.checkpoints.mkdir()
    for update, best in ((0, 0), (3, 3), (6, 3), (9, 3), (12, 3), (5, 3)):
        run.save(update, {"update": update}, keep=2, best=best)
    assert [int(path.stem) for path in run.checkpoint_paths()] == [3, 5, 9, 12]
    assert read_checkpoint(run.checkpoint_path(3))["update"] == 3
