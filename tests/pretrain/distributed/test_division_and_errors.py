"""Several processes before and beside training: how work is divided, how they meet, and what they say of errors."""

import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from elmoc.word_vectors.sources import RandomVectors
from pretrain.config import TrainConfig
from pretrain.distributed.implementations import other_implementations
from pretrain.distributed.processes import TIMEOUT, Processes, pack, unpack
from pretrain.distributed.rendezvous import rendezvous
from pretrain.run.directory import RunDirectory
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint
from tests.pretrain.distributed.test_processes import HALVES, LOST
from tests.tiny import add_table, learnable_sentences, write_corpus
from tests.warm import start_together


def statuses_and_errors(folder: Path, *commands: list[str]) -> list[tuple[int, list[str]]]:
    """Run each command as one process of a run; their exit statuses and standard errors."""
    processes = start_together(*commands, log=folder / "process")
    return [(process.wait(), process.stderr.splitlines()) for process in processes]


def test_an_error_that_all_have_is_printed_once(runs: TinyRuns) -> None:
    commands = [["-m", "pretrain", *runs.arguments("run", train__streams=3)]] * 2
    first, second = statuses_and_errors(runs.folder, *commands)
    assert first == (1, ["error: train.streams=3 cannot be divided among 2 processes: use a multiple of 2"])
    assert second == (1, [])
    assert not (runs.folder / "run").exists()


@pytest.mark.parametrize(
    ("told", "differing"),
    [
        (
            ({"train__seed": 1}, {"train__seed": 2, "train__recurrence": "plain", "log__checkpoint_updates": 3}),
            "train.seed, log.checkpoint_updates, train.recurrence",
        ),
        (
            ({"output_layer__kind": "adaptive", "output_layer__cutoffs": [4]}, {"output_layer__kind": "softmax"}),
            "output_layer.kind, output_layer.cutoffs, output_layer.reduction, output_layer.tied, "
            "output_layer.projection_regularisation",
        ),
    ],
    ids=["settings", "kinds"],
)
def test_processes_that_were_told_different_things(
    runs: TinyRuns, told: tuple[dict[str, Any], ...], differing: str
) -> None:
    commands = [["-m", "pretrain", *runs.arguments("run", **settings)] for settings in told]
    first, second = statuses_and_errors(runs.folder, *commands)
    assert first == (1, [f"error: rank 1 has other values than rank 0 for {differing}: give all of them the same"])
    assert second == (1, [])
    assert not (runs.folder / "run").exists()


def test_targets_without_vectors_are_told_in_all(runs: TinyRuns, tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [learnable_sentences(50, 0)], [learnable_sentences(20, 1)])
    add_table(corpus, "raw", RandomVectors(seed=5, size=8), zero=corpus.lexicon)
    commands = [["-m", "pretrain", *runs.arguments("run", data__corpus=str(corpus.path))]] * 2
    (status, lines), second = statuses_and_errors(runs.folder, *commands)
    assert (status, second) == (1, (1, []))
    (line,) = (line for line in lines if line.startswith("error: "))
    assert line.startswith("error: the held-out cosine, by which the best model is chosen, is not a number")


WITHOUT_COMPILER = """
import os, sys
from elmoc.kernels.reference import ReferenceKernels
if os.environ["RANK"] == "1":
    import elmoc.encoders.lstm
    elmoc.encoders.lstm.choose_kernels = lambda *kind: ReferenceKernels("there is no compiler")
from pretrain.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_process_that_computes_by_something_else_is_named(runs: TinyRuns) -> None:
    command = ["-c", WITHOUT_COMPILER, *runs.arguments("run", train__updates=1)]
    processes = start_together(command, command, log=runs.folder / "rank")
    assert [process.wait() for process in processes] == [0, 0], processes[0].stderr
    (line,) = (line for line in processes[0].stdout.splitlines() if line.startswith("rank"))
    assert line.startswith("rank 1: by the fused recurrence (between its products: ")
    assert line.endswith("there is no compiler), unlike rank 0; all wait for the slowest")
    assert processes[1].stdout == ""


def test_processes_by_what_they_compute() -> None:
    assert other_implementations(["a", "a"]) == []
    assert other_implementations(["a", "b", "c", "b"]) == [
        "ranks 1, 3: by b, unlike rank 0; all wait for the slowest",
        "rank 2: by c, unlike rank 0; all wait for the slowest",
    ]


def test_a_run_that_another_process_trains_is_refused_in_all(runs: TinyRuns) -> None:
    run = runs.run("run")
    commands = [["-m", "pretrain", *runs.arguments("run", "--resume")]] * 2
    with run.locked():
        first, second = statuses_and_errors(runs.folder, *commands)
    assert first == (1, [f"error: another process is writing {run.config}: wait for it, or stop it"])
    assert second == (1, [])


def test_a_checkpoint_that_does_not_fit_is_named_in_all(runs: TinyRuns) -> None:
    run = runs.run("run", **HALVES)
    state = last_checkpoint(run)
    state["optimisers"]["backward"]["state"] = {}
    torch.save(state, run.checkpoint_paths()[-1])
    commands = [["-m", "pretrain", *runs.arguments("run", "--resume", **HALVES)]] * 2
    first, second = statuses_and_errors(runs.folder, *commands)
    assert first[0] == second[0] == 1
    assert second[1] == []
    (line,) = first[1]
    assert line.startswith(f"error: rank 1: {run.checkpoint_paths()[-1]} does not fit this run (lacks tensors: optimi")


def test_messages_are_not_unpickled() -> None:
    value = ({"a": torch.arange(3)}, None, 1.5, ["x", True])
    assert_same(unpack(pack(value)), value)
    pickled = torch.frombuffer(bytearray(pickle.dumps(Path, protocol=2)), dtype=torch.uint8)
    with pytest.raises(pickle.UnpicklingError):
        unpack(pickled)


def test_started_again_before_all_had_met_a_run_begins(runs: TinyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    results = statuses_and_errors(runs.folder, *[["-m", "pretrain", *runs.arguments("run", train__updates=1)]] * 2)
    assert [status for status, _ in results] == [0, 0]
    assert last_checkpoint(RunDirectory(runs.folder / "run"))["update"] == 1


BUSY = """
import os, time
from pretrain.distributed import peer_watch
from pretrain.distributed.rendezvous import connect
peer_watch.GRACE = 0.1
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
