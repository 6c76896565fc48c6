"""Several processes: they train what one process trains, and the loss of one is told in a sentence and made good."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory
from pretrain.run.directory import RunDirectory, read_metrics
from tests.pretrain.conftest import PARTS, TinyRuns, assert_same, last_checkpoint, signalled
from tests.warm import WarmProcess, start_together

UPDATES, EVERY = 40, 10
SETTINGS: dict[str, Any] = {
    "data__target_vectors": "gaps",
    "encoder__dropout": 0.2,
    "encoder__projection_size": 16,
    "encoder__cell_size": 260,  # large enough gradients to travel in pieces
    "train__updates": UPDATES,
    "train__window": 4,
    "schedule__base": 1e-3,  # with 1e-2, a difference in rounding grows tenfold every 20 updates
    "evaluation__every_updates": 20,
    "log__every_updates": EVERY,
    "log__checkpoint_updates": EVERY,
    "log__keep": 9,
}
# both directions of a process at once, each with messages of its own
SIDE_BY_SIDE = {"train__threads": 2}
# by rank: the signal that a process sends itself, and before which event (see `signalled`)
Signals = dict[int, tuple[int, int]]
LOST = "another process of this run ended or was lost"
# by how much runs with other numbers of processes differ at their end
ROUNDING = {"encoder": 5e-5, "heads": 5e-5, "optimisers": 5e-5, "recurrent": 5e-3}


class Together:
    """`python -m pretrain` in several processes, which find each other as those of `torchrun` do."""

    def __init__(
        self, runs: TinyRuns, name: str, *options: str, count: int = 2, signals: Signals | None = None, **settings: Any
    ):
        self.run = RunDirectory(runs.folder / name)
        arguments = runs.arguments(name, *options, **(SETTINGS | settings))
        commands = [
            signalled(*signals[rank], arguments) if signals and rank in signals else ["-m", "pretrain", *arguments]
            for rank in range(count)
        ]
        self.processes = start_together(*commands, log=runs.folder / f"{name}-rank")

    def end(self) -> list[int]:
        """The exit statuses, once all have ended."""
        return [process.wait() for process in self.processes]

    def said(self, rank: int, stream: str = "stderr") -> list[str]:
        """What a process has said, but for its progress."""
        return without_progress(getattr(self.processes[rank], stream))


def without_progress(text: str) -> list[str]:
    return [line for line in text.replace("\r", "\n").splitlines() if line.strip() and "% |" not in line]


@pytest.fixture(scope="module")
def alone(module_runs: TinyRuns) -> RunDirectory:
    """The run by one process."""
    return module_runs.run("alone", **SETTINGS)


@pytest.fixture(scope="module")
def pair(module_runs: TinyRuns) -> RunDirectory:
    """The same run by two processes, each with half of the streams."""
    together = Together(module_runs, "pair", **SIDE_BY_SIDE)
    assert together.end() == [0, 0], together.said(0)
    assert "done: the model is in" in together.said(0, "stdout")[-1]
    assert together.said(0) == together.said(1) == together.said(1, "stdout") == [], "one process talks"
    return together.run


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested dictionaries and lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(each)


def assert_close_end(run: RunDirectory, other: RunDirectory) -> None:
    one, two = last_checkpoint(run), last_checkpoint(other)
    assert one.keys() == two.keys()
    for kind, atol in ROUNDING.items():
        torch.testing.assert_close(list(tensors_of(one[kind])), list(tensors_of(two[kind])), atol=atol, rtol=1e-4)
    for kind in ("generators", "position", "update", "updates", "tenths", "words", "masked", "data", "device"):
        assert_same(one[kind], two[kind], kind)


def assert_same_end(run: RunDirectory, other: RunDirectory) -> None:
    assert_same(last_checkpoint(run), last_checkpoint(other), but=("seconds", "metrics_bytes"))
    assert read_metrics(run.path, "evaluation") == read_metrics(other.path, "evaluation")


def cut_off(run: RunDirectory, path: Path, update: int) -> None:
    """A copy of a run as if it had been killed after `update`."""
    shutil.copytree(run.path, path)
    for checkpoint in RunDirectory(path).checkpoint_paths():
        if int(checkpoint.stem) > update:
            checkpoint.unlink()


# the same weights


def test_two_processes_end_with_the_weights_of_one(alone: RunDirectory, pair: RunDirectory) -> None:
    assert_close_end(pair, alone)
    for one, two in zip(read_metrics(alone.path, "train"), read_metrics(pair.path, "train"), strict=True):
        assert one["masked_targets"] == two["masked_targets"]
        for name in ("loss", "forward_gradient_norm", "backward_gradient_norm"):
            assert one[name] == pytest.approx(two[name], rel=1e-4)
    for one, two in zip(read_metrics(alone.path, "evaluation"), read_metrics(pair.path, "evaluation"), strict=True):
        assert one["cosine"] == pytest.approx(two["cosine"], abs=1e-4)


def test_stopped_by_a_signal_to_one_process_and_resumed(runs: TinyRuns, pair: RunDirectory) -> None:
    together = Together(runs, "run", signals={1: (signal.SIGTERM, 15)}, **SIDE_BY_SIDE)
    assert together.end() == [143, 143]
    said = ["stopped by SIGTERM: give the same command again, with --resume if it had begun"]
    assert [together.said(rank) for rank in range(2)] == [said] * 2
    assert EVERY <= last_checkpoint(together.run)["update"] < UPDATES
    together = Together(runs, "run", "--resume", **SIDE_BY_SIDE)
    assert together.end() == [0, 0], together.said(0)
    assert_same_end(together.run, pair)
    models = [read_model_directory(run.path) for run in (together.run, pair)]
    assert_same(*(dict(model.encoder.state_dict()) for model in models))
    one, two = (read_metrics(run.path, "train")[-1] for run in (together.run, pair))
    del one["words_per_second"], two["words_per_second"]
    assert one == two


@pytest.mark.slow
def test_four_processes_end_with_the_weights_of_one_also_when_resumed(runs: TinyRuns, alone: RunDirectory) -> None:
    together = Together(runs, "run", count=4)
    assert together.end() == [0] * 4, [together.said(rank) for rank in range(4)]
    assert_close_end(together.run, alone)
    cut_off(together.run, runs.folder / "resumed", 20)
    resumed = Together(runs, "resumed", "--resume", count=4)
    assert resumed.end() == [0] * 4, [resumed.said(rank) for rank in range(4)]
    assert_same_end(resumed.run, together.run)  # sums of three and more depend on how messages are cut


# the original ELMo: both directions share the input and the output layer, and there is no layer norm
ELMO = PARTS["character_cnn"] | PARTS["sampled"] | {"encoder__layer_norm": False, "train__updates": 10}
# those that are tested every time: the original ELMo, a shared layer with dense gradients, and a tied one
FAST = ("elmo", "adaptive", "subwords")


@pytest.mark.parametrize(
    "part", [pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST)) for name in ("elmo", *PARTS)]
)
def test_every_part_has_the_gradients_of_all_processes(runs: TinyRuns, part: str, tiny_subwords: Corpus) -> None:
    if part == "subwords":
        runs.corpus = tiny_subwords.path
    settings = SIDE_BY_SIDE | {"train__updates": 20} | (ELMO if part == "elmo" else PARTS[part])
    together = Together(runs, "pair", **settings)
    assert together.end() == [0, 0], together.said(0)
    assert_close_end(together.run, runs.run("alone", **SETTINGS | settings))


# the clock of each process goes on whenever an update looks at it, that of the second one twice as fast
CLOCK = """
import itertools, os, sys, types
from pretrain import train
from pretrain.__main__ import main
from pretrain.run import recorder
ticks = itertools.count()
speed = 0.01 * (1 + int(os.environ["RANK"]))
train.time = types.SimpleNamespace(monotonic=lambda: speed * next(ticks))
recorder.time = types.SimpleNamespace(monotonic=lambda: 0.0, time=lambda: 0.0)
sys.exit(main(sys.argv[1:]))
"""


def test_a_time_limit_ends_all_processes_at_once(runs: TinyRuns) -> None:
    arguments = runs.arguments("run", "--max-time=1s", **SETTINGS | {"train__updates": 10**6})
    processes = start_together(*[["-c", CLOCK, *arguments]] * 2, log=runs.folder / "rank")
    assert [process.wait() for process in processes] == [0, 0], [process.stderr for process in processes]
    checkpoint = last_checkpoint(RunDirectory(runs.folder / "run"))
    assert 10 < checkpoint["update"] < 25
    assert 1 <= checkpoint["seconds"] < 1.2


# killed, and going on with as many processes or another number


@pytest.mark.parametrize("rank", [0, 1])
def test_killed_and_resumed_it_ends_the_same(runs: TinyRuns, pair: RunDirectory, rank: int) -> None:
    together = Together(runs, "run", signals={rank: (signal.SIGKILL, 25)}, **SIDE_BY_SIDE)
    assert together.end() == ([-signal.SIGKILL, 1] if rank == 0 else [1, -signal.SIGKILL])
    (line,) = together.said(1 - rank)
    assert line.startswith(f"error: rank 1: {LOST}" if rank == 0 else f"error: {LOST}")
    together = Together(runs, "run", "--resume", **SIDE_BY_SIDE)
    assert together.end() == [0, 0], together.said(0)
    assert_same_end(together.run, pair)


@pytest.mark.slow
def test_started_by_torchrun_it_ends_the_same(runs: TinyRuns, pair: RunDirectory) -> None:
    command = ["-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "pretrain"]
    command += runs.arguments("run", **(SETTINGS | SIDE_BY_SIDE))
    launch = WarmProcess(command, log=runs.folder / "torchrun")
    assert launch.wait() == 0, launch.stderr
    assert_same_end(RunDirectory(runs.folder / "run"), pair)


def test_begun_by_two_processes_and_ended_by_one(runs: TinyRuns, pair: RunDirectory, alone: RunDirectory) -> None:
    cut_off(pair, runs.folder / "run", 20)
    assert_close_end(runs.run("run", "--resume", **SETTINGS), alone)
