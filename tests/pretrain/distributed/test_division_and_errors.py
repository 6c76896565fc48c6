"""Several processes before and beside training: how work is divided, how they meet, and what they say of errors."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from pretrain.config import TrainConfig
from pretrain.distributed.processes import TIMEOUT, Processes, rendezvous
from tests.pretrain.conftest import TinyRuns
from tests.pretrain.distributed.test_processes import LOST
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


BUSY = """
import os, time
from pretrain.distributed import errors
from pretrain.distributed.processes import connect
errors.GRACE = 0.1
with connect() as processes:
    if processes.rank == 1:
        os.kill(os.getpid(), 9)
    time.sleep(60)
"""


def test_a_process_that_is_too_busy_to_notice_is_ended_by_its_watch(tmp_path: Path) -> None:
    results = statuses_and_errors(tmp_path, *[["-c", BUSY]] * 3)
    assert [status for status, _ in results] == [1, -signal.SIGKILL, 1]
    for rank in (0, 2):
        (line,) = results[rank][1]
        assert line.startswith(f"error: rank {rank}: {LOST} (while this one was busy)")


@pytest.mark.parametrize(
    ("size", "settings", "message"),
    [
        (2, {"streams": 3}, "train.streams=3 cannot be divided among 2 processes: use a multiple of 2"),
        (4, {"streams": 6}, "train.streams=6 cannot be divided among 4 processes"),
        (3, {"parallel": "directions"}, "needs an even number of processes and both directions .* not 3 and forward"),
        (2, {"parallel": "directions", "directions": ("forward",)}, "not 2 and forward$"),
        (2, {"device": "cuda:0"}, "train.device=cuda:0 is one GPU for 2 processes: use cuda or auto"),
    ],
)
def test_work_that_cannot_be_divided(size: int, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Processes(world_size=size).assign_directions(TrainConfig(**settings))


def test_directions_and_streams_of_each_process() -> None:
    for parallel, parts in (("data", 4), ("directions", 2)):
        for rank in range(4):
            processes = Processes(rank=rank, world_size=4)
            processes.assign_directions(TrainConfig(streams=8, parallel=parallel))
            assert processes.directions == (DIRECTIONS if parallel == "data" else (DIRECTIONS[rank // 2],))
            each = 8 // parts
            assert processes.stream_slice(8) == slice(rank % parts * each, (rank % parts + 1) * each)
    one = Processes()
    one.assign_directions(TrainConfig(parallel="directions"))
    assert one.directions == DIRECTIONS, "one process trains both in any case"


def test_processes_started_again_do_not_meet_those_that_are_gone() -> None:
    store = dist.HashStore()
    for order in ((0, 1, 2), (2, 1, 0)):  # those of the second start come in the worst order
        with ThreadPoolExecutor(3) as pool:
            met = {}
            for rank in order:
                met[rank] = pool.submit(rendezvous, store, rank, 3, TIMEOUT)
                time.sleep(0.2)
        met[0].result().set("start", str(order))
        assert {part.result().get("start").decode() for part in met.values()} == {str(order)}
