"""Several processes before and beside training: how work is divided, how they meet, and what they say of errors."""

from pathlib import Path
from typing import Any

import pytest
from elmoc.errors import InputError
from pretrain.distributed.processes import Processes
from tests.pretrain.conftest import TinyRuns
from tests.warm import start_together


def statuses_and_errors(folder: Path, *commands: list[str]) -> list[tuple[int, list[str]]]:
    """Run each command as one process of a run; their exit statuses and standard errors."""
    processes = start_together(*commands, log=folder / "process")
    return [(process.wait(), process.stderr.splitlines()) for process in processes]


def test_processes_that_were_told_different_things(runs: TinyRuns) -> None:
    told = ({"train__seed": 1}, {"train__seed": 2, "train__recurrence": "plain", "log__checkpoint_updates": 3})
    commands = [["-m", "pretrain", *runs.arguments("run", **settings)] for settings in told]
    (status, (line,)), second = statuses_and_errors(runs.folder, *commands)
    assert status == 1
    assert all(key in line for key in ("rank 1", "train.seed", "log.checkpoint_updates", "train.recurrence"))
    assert second == (1, [])
    assert not (runs.folder / "run").exists()


def test_a_run_that_another_process_trains_is_refused_in_all(runs: TinyRuns) -> None:
    run = runs.run("run")
    commands = [["-m", "pretrain", *runs.arguments("run", "--resume")]] * 2
    with run.locked():
        first, second = statuses_and_errors(runs.folder, *commands)
    assert first == (1, [f"error: another process is writing {run.config}: wait for it, or stop it"])
    assert second == (1, [])


@pytest.mark.parametrize(
    ("size", "settings", "message"),
    [
        (2, {"streams": 3}, "train.streams=3 cannot be divided among 2 processes: use a multiple of 2"),
        (4, {"streams": 6}, "train.streams=6 cannot be divided among 4 processes"),
        (2, {"device": "cuda:0"}, "train.device=cuda:0 is one GPU for 2 processes: use cuda or auto"),
    ],
)
def test_work_that_cannot_be_divided(size: int, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Processes(world_size=size).require_divisible(**{"streams": 768, "device": "cpu"} | settings)


def test_streams_of_each_process() -> None:
    slices = [Processes(rank=rank, world_size=4).stream_slice(8) for rank in range(4)]
    assert slices == [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 8)]
    Processes().require_divisible(streams=3, device="cuda:1")
    assert Processes().stream_slice(3) == slice(0, 3)
