"""Several processes: they train what one process trains, and the loss of one is told in a sentence and made good."""

import os
import pickle
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from elmoc.corpus import Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.sources import RandomVectors
from pretrain.config import TrainConfig
from pretrain.data.windows import Window
from pretrain.distributed.direction_group import SMALL, GradientReducer
from pretrain.distributed.implementations import other_implementations
from pretrain.distributed.processes import TIMEOUT, Processes, pack, unpack
from pretrain.distributed.rendezvous import rendezvous
from pretrain.run.directory import RunDirectory, read_metrics
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint
from tests.pretrain.data.reading import windows_of_shards
from tests.tiny import add_table, learnable_sentences, write_corpus
from tests.warm import WarmProcess, start_together

UPDATES, EVERY = 100, 20
SETTINGS: dict[str, Any] = {
    "data__target_vectors": "gaps",
    "encoder__dropout": 0.2,
    "encoder__projection_size": 16,
    "encoder__cell_size": 260,  # the gradients of W_x and W_h are large enough to be sent as soon as they are there
    "train__updates": UPDATES,
    "train__window": 4,
    "schedule__base": 1e-3,  # with 1e-2, a difference in rounding grows tenfold every 20 updates
    "evaluation__every_updates": 50,
    "log__every_updates": EVERY,
    "log__checkpoint_updates": EVERY,
    "log__keep": 9,
    "optimiser__average": 0.1,
    "optimiser__weight_decay": 0.1,
}
HALVES = {"train__parallel": "directions"}
SIDE_BY_SIDE = {"train__threads": 2}
"""Both directions of a process at once, each with messages of its own."""
LOST = "another process of this run ended or was lost"
ROUNDING = {"encoder": 5e-5, "heads": 5e-5, "optimisers": 5e-5, "averages": 5e-5, "recurrent": 5e-3}
"""By how much runs with other numbers of processes differ at their end."""


class Launch:
    """`python -m pretrain` in processes that `torchrun` starts, two of them unless `torchrun` says otherwise."""

    def __init__(self, runs: TinyRuns, name: str, *options: str, torchrun: tuple[str, ...] = (), **settings: Any):
        self.run = RunDirectory(runs.folder / name)
        self._logs = runs.folder / f"{name}-logs{time.monotonic_ns()}"
        command = ["-m", "torch.distributed.run", "--redirects=3", f"--log-dir={self._logs}"]
        command += ["--nproc-per-node=2", *torchrun, "-m", "pretrain"]
        command += runs.arguments(name, *options, **(SETTINGS | settings))
        self.process = WarmProcess(command, log=runs.folder / f"{name}-torchrun")

    def wait_for_checkpoint(self, update: int) -> None:
        """Wait until the checkpoint of an update is there."""
        while not (self.run.checkpoints / f"{update:09d}.pt").exists():
            assert self.process.poll() is None, self.process.stderr
            time.sleep(0.005)

    def kill(self, rank: int) -> None:
        """Kill a process by its rank."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            if f"\0RANK={rank}\0" in Path(f"/proc/{child}/environ").read_text():
                os.kill(int(child), signal.SIGKILL)

    def end(self) -> int:
        """The exit status of `torchrun`, once it has ended."""
        return self.process.wait()

    def said(self, rank: int, stream: str = "stderr", attempt: int = 0) -> list[str]:
        """What a process has said, but for its progress."""
        (log,) = self._logs.glob(f"*/attempt_{attempt}/{rank}/{stream}.log")
        return without_progress(log.read_text())


class Together:
    """The same processes without `torchrun`: they are there at once, where each that it starts imports PyTorch."""

    def __init__(self, runs: TinyRuns, name: str, *options: str, count: int = 2, **settings: Any):
        self.run = RunDirectory(runs.folder / name)
        command = ["-m", "pretrain", *runs.arguments(name, *options, **(SETTINGS | settings))]
        self.processes = start_together(*[command] * count, log=runs.folder / f"{name}-rank")

    def end(self) -> list[int]:
        """The exit statuses, once all have ended."""
        return [process.wait() for process in self.processes]

    def said(self, rank: int, stream: str = "stderr") -> list[str]:
        """What a process has said, but for its progress."""
        return without_progress(getattr(self.processes[rank], stream))


def without_progress(text: str) -> list[str]:
    return [line for line in text.replace("\r", "\n").splitlines() if line.strip() and "words/s" not in line]


@pytest.fixture(scope="module")
def module_runs(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Corpus) -> TinyRuns:
    return TinyRuns(tmp_path_factory.mktemp("processes"), tiny_corpus.path)


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
        for value, expected in zip(tensors_of(one[kind]), tensors_of(two[kind]), strict=True):
            torch.testing.assert_close(value, expected, atol=atol, rtol=1e-4)
    for kind in ("generators", "position", "update", "updates", "words", "masked", "data", "device"):
        assert_same(one[kind], two[kind], kind)


def assert_same_end(run: RunDirectory, other: RunDirectory) -> None:
    assert_same(last_checkpoint(run), last_checkpoint(other), but=("seconds", "longest_evaluation", "metrics_bytes"))
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


def test_the_masked_targets_of_that_run_are_spread_unevenly(tiny_corpus: Corpus) -> None:
    zero = [tiny_corpus.ids[word] for word in ("w3", "w4")]
    halves = [
        [np.isin(window.ids["forward"][:, 1:], zero).sum() for window in read(tiny_corpus, half)]
        for half in (slice(0, 2), slice(2, 4))
    ]
    assert sum(one != other for one, other in zip(*halves, strict=True)) > UPDATES / 4


def read(corpus: Corpus, own: slice) -> list[Window]:
    windows = windows_of_shards(corpus, 4, 4, own=own)
    return list(islice(windows, UPDATES))


def test_large_and_small_gradients_are_among_them(alone: RunDirectory) -> None:
    sizes = [tensor.numel() for tensor in last_checkpoint(alone)["encoder"].values()]
    assert min(sizes) < SMALL <= max(sizes)


def test_there_may_be_no_small_gradients(tmp_path: Path) -> None:
    """As of the original ELMo, which has no projection of word vectors and no layer norm."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        weight = torch.nn.Parameter(torch.ones(SMALL))
        assert dist.group.WORLD is not None
        reducer = GradientReducer([weight], dist.group.WORLD)
        weight.square().sum().backward()
        reducer.wait()
        assert weight.grad is not None
        assert torch.equal(weight.grad, torch.full((SMALL,), 2.0))
    finally:
        dist.destroy_process_group()


def test_each_process_reads_its_own_streams(tiny_corpus: Corpus) -> None:
    parts = [read(tiny_corpus, own) for own in (slice(0, 1), slice(1, 4))]
    for whole, *own in zip(read(tiny_corpus, slice(0, 4)), *parts, strict=True):
        for direction in DIRECTIONS:
            np.testing.assert_array_equal(np.concatenate([part.ids[direction] for part in own]), whole.ids[direction])
        assert [part.next for part in own] == [whole.next] * 2


def test_each_direction_in_a_process_of_its_own_stopped_and_resumed(runs: TinyRuns, alone: RunDirectory) -> None:
    launch = Launch(runs, "halves", **HALVES)
    launch.wait_for_checkpoint(EVERY)
    launch.process.send_signal(signal.SIGTERM)
    assert launch.end() != 0
    assert "stopped after saving: go on by the same command with --resume" in launch.said(0, "stdout")[-1]
    assert [launch.said(rank) for rank in range(2)] == [["interrupted"]] * 2
    assert EVERY <= last_checkpoint(launch.run)["update"] < UPDATES
    together = Together(runs, "halves", "--resume", **HALVES)
    assert together.end() == [0, 0], together.said(0)
    assert_same_end(launch.run, alone)
    models = [read_model_directory(run.path) for run in (launch.run, alone)]
    assert_same(*(dict(model.encoder.state_dict()) for model in models))
    one, two = (read_metrics(run.path, "train")[-1] for run in (launch.run, alone))
    del one["words_per_second"], two["words_per_second"]
    assert one == two


def test_two_processes_on_each_direction(runs: TinyRuns, alone: RunDirectory) -> None:
    together = Together(runs, "run", count=4, **HALVES)
    assert together.end() == [0] * 4, [together.said(rank) for rank in range(4)]
    assert_close_end(together.run, alone)


@pytest.mark.slow
def test_candidates_are_those_of_all_processes(runs: TinyRuns) -> None:
    settings = SIDE_BY_SIDE | {
        "output_layer__kind": "contrastive",
        "output_layer__extra_candidates": 3,
        "output_layer__ahead_weight": 0.5,
        "train__updates": 40,
    }
    together = Together(runs, "pair", **settings)
    assert together.end() == [0, 0], together.said(0)
    assert_close_end(together.run, runs.run("alone", **SETTINGS | settings))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["l2", "von_mises_fisher", "max_margin"])
def test_each_loss_of_vectors_is_taken_over_all_processes(runs: TinyRuns, loss: str) -> None:
    settings = SIDE_BY_SIDE | {"output_layer__loss": loss, "train__updates": 40}
    together = Together(runs, "pair", **settings)
    assert together.end() == [0, 0], together.said(0)
    assert_close_end(together.run, runs.run("alone", **SETTINGS | settings))


OF_CHARACTERS = {"input_layer__kind": "character_cnn", "input_layer__filters": [[1, 6], [2, 6]]}
LAYERS: dict[str, dict[str, Any]] = {
    "elmo": OF_CHARACTERS
    | {"encoder__layer_norm": False, "output_layer__kind": "sampled", "output_layer__samples": 6, "train__updates": 10},
    "adaptive": {"output_layer__kind": "adaptive", "output_layer__cutoffs": [4, 12]},
    "sampled": {"output_layer__kind": "sampled", "output_layer__samples": 6},
    "fixed": {"output_layer__kind": "fixed", "output_layer__samples": 6},
    "softmax": {"output_layer__kind": "softmax"},
    "character_cnn": OF_CHARACTERS,
    "subwords": {"input_layer__kind": "subwords", "output_layer__kind": "softmax"},
    "subwords_tied": {
        "input_layer__kind": "subwords",
        "output_layer__kind": "softmax",
        "output_layer__tied": True,
        "output_layer__projection_regularisation": 0.15,
    },
    "subwords_sampled": {
        "input_layer__kind": "subwords",
        "output_layer__kind": "sampled",
        "output_layer__samples": 60,
        "output_layer__tied": True,
    },
    "plain_lstm": {"encoder__kind": "plain_lstm", "encoder__cell_size": None},
    "transformer": {"encoder__kind": "transformer", "encoder__cell_size": None, "encoder__heads": 2},
}
"""What differs from `SETTINGS`."""
FAST = ("elmo", "adaptive", "subwords_sampled")
"""Those that are tested every time: the original ELMo, a shared layer with dense gradients, and a tied one."""


@pytest.mark.parametrize(
    "layer",
    [pytest.param(each, marks=[pytest.mark.slow] * (name not in FAST)) for name, each in LAYERS.items()],
    ids=LAYERS,
)
def test_every_part_has_the_gradients_of_all_processes(
    runs: TinyRuns, layer: dict[str, Any], tiny_subwords: Corpus
) -> None:
    if layer.get("input_layer__kind") == "subwords":
        runs.corpus = tiny_subwords.path
    settings = SIDE_BY_SIDE | {"train__updates": 40} | layer
    together = Together(runs, "pair", **settings)
    assert together.end() == [0, 0], together.said(0)
    assert_close_end(together.run, runs.run("alone", **SETTINGS | settings))


def test_a_time_limit_sets_the_same_length_everywhere(runs: TinyRuns) -> None:
    together = Together(runs, "run", "--max-time=2s", train__updates=10**6)
    assert together.end() == [0, 0], [together.said(rank) for rank in range(2)]
    checkpoint = last_checkpoint(together.run)
    assert 8 < checkpoint["update"] == checkpoint["updates"] < 10**6


# killed, and going on with as many processes or another number


def test_killed_and_started_again_by_torchrun_it_ends_the_same(runs: TinyRuns, pair: RunDirectory) -> None:
    launch = Launch(runs, "run", torchrun=("--max-restarts=1",), **SIDE_BY_SIDE)
    launch.wait_for_checkpoint(EVERY)
    launch.kill(1)
    assert launch.end() == 0
    (line,) = launch.said(0)
    assert line.startswith(f"error: {LOST}")
    assert line.endswith("go on from the last checkpoint by the same command with --resume")
    assert_same_end(launch.run, pair)


@pytest.mark.slow
def test_one_process_that_is_killed_is_started_again_by_torchrun(runs: TinyRuns, alone: RunDirectory) -> None:
    launch = Launch(runs, "run", torchrun=("--nproc-per-node=1", "--max-restarts=1"))
    launch.wait_for_checkpoint(EVERY)
    launch.kill(0)
    assert launch.end() == 0
    assert_close_end(launch.run, alone)


def test_one_process_goes_on_unasked_with_runs_of_its_own_launch_alone(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("RUN_ID", "none"), ("RESTART_COUNT", "0")):
        monkeypatch.setenv(f"TORCHELASTIC_{name}", value)
    runs.run("run")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    runs.run("run")
    monkeypatch.setattr(os, "getppid", lambda: 1)  # of another torchrun, which has the same id
    assert runs.status("run") == 1
    assert "holds a run already: go on with it by --resume" in capsys.readouterr().err


def test_without_the_first_process_the_others_end_with_a_sentence(runs: TinyRuns) -> None:
    launch = Launch(runs, "run")
    launch.wait_for_checkpoint(EVERY)
    launch.kill(0)
    assert launch.end() != 0
    (line,) = launch.said(1)
    assert line.startswith(f"error: rank 1: {LOST}")


def test_begun_by_two_processes_and_ended_by_one(runs: TinyRuns, pair: RunDirectory, alone: RunDirectory) -> None:
    cut_off(pair, runs.folder / "run", 60)
    assert_close_end(runs.run("run", "--resume", **SETTINGS), alone)


def test_begun_by_one_process_and_ended_by_two(runs: TinyRuns, alone: RunDirectory) -> None:
    cut_off(alone, runs.folder / "run", 60)
    together = Together(runs, "run", "--resume")
    assert together.end() == [0, 0], together.said(0)
    assert_close_end(together.run, alone)


# errors


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
