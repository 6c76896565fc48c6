"""Memory: a run that needs more than there is ends with a sentence before anything of that size is made."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.devices import free_memory
from pretrain.config import TrainConfig, load_config
from pretrain.data.loader import stream_batches
from pretrain.distributed.processes import Processes
from pretrain.execution import memory
from pretrain.execution.memory import MemoryNeed
from pretrain.setup import TrainingSetup, set_up
from tests.pretrain.conftest import TinyRuns

Fails = Callable[[int], str]
CPU = torch.device("cpu")
ABSURD = {"encoder__layers": 1000, "encoder__cell_size": 2**20, "encoder__projection_size": 2**20}


def setup_of(runs: TinyRuns, **settings: object) -> TrainingSetup:
    overrides = [argument.removeprefix("--set=") for argument in runs.arguments("run", **settings)[2:]]
    return set_up(load_config(runs.config, overrides))


def test_what_the_system_says_is_free() -> None:
    total = 2**50
    assert 2**20 < free_memory(torch.device("cpu")) < total


def test_an_encoder_that_fits_into_no_memory_is_refused_before_it_is_built(
    runs: TinyRuns, error_line: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs.status("run", "--describe", **ABSURD) == 0
    weights = 2 * 1000 * 9 * 2**40
    (parameters,) = re.findall(r"trainable parameters: ([\d,]+) ", capsys.readouterr().out)
    assert int(parameters.replace(",", "")) == pytest.approx(weights, rel=0.01)
    error = error_line(runs.status("run", **ABSURD))
    found = re.search(
        r"error: the run needs about (\d+)\.\d TB on cpu: weights, gradients and optimiser \d+\.\d TB.*; "
        r"[\d.]+ GB are free: use smaller sizes, or a machine with more memory$",
        error,
    )
    assert found, error
    # two directions of 1,000 layers with 8 · 2⁴⁰ weights for the gates and 2⁴⁰ for the projection
    assert int(found[1]) == pytest.approx(weights * 16 / 1e12, rel=0.01)
    assert not (runs.folder / "run").exists()


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"train__streams": 40, "encoder__cell_size": 64}, "activations (train.streams × train.window)"),
        ({"train__mix_shards": 10**12}, "shuffled text (train.mix_shards)"),
        ({"evaluation__words": 10**12, "evaluation__candidates": 10**12}, "scoring (evaluation.words, "),
    ],
)
def test_what_needs_the_memory_is_named(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, error_line: Fails, settings: dict[str, int], what: str
) -> None:
    small, large = (sum(need.bytes for need in setup_of(runs, **more).memory) for more in ({}, settings))
    assert small < large
    monkeypatch.setattr(memory, "free_memory", lambda device: (small + large) // 2)
    error = error_line(runs.status("run", **settings))
    assert "error: the run needs about" in error
    assert what in error
    assert not (runs.folder / "run").exists()
    runs.run("run")


def test_a_description_says_what_is_needed_and_what_is_free(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str], tiny_corpus: Corpus
) -> None:
    runs.run("run", "--describe", train__mix_shards=2)
    printed = capsys.readouterr().out
    tokens = tiny_corpus.train_tokens // 2  # three shards, in two groups
    assert re.search(
        r"^memory: about \d+\.\d KB on cpu: weights, gradients and optimiser \d+\.\d KB, "
        r"activations \(train.streams × train.window\) \d+\.\d KB, "
        r"batches made ahead \(train.streams × train.window\) \d+\.\d KB, "
        rf"shuffled text \(train.mix_shards\) {40 * tokens / 1000:.1f} KB, "
        r"scoring \(evaluation.words, evaluation.candidates\) \d+\.\d KB; [\d.]+ GB are free$",
        printed,
        re.MULTILINE,
    ), printed


def test_directions_that_run_in_turn_need_the_activations_of_one(runs: TinyRuns) -> None:
    needs = [setup_of(runs, train__threads=threads).memory[0] for threads in (1, 2)]
    assert needs[1].activations == 2 * needs[0].activations
    assert needs[1].weights == needs[0].weights


def test_updates_and_evaluations_take_turns() -> None:
    need = MemoryNeed(torch.device("cpu"), weights=10, activations=30, text=5, scoring=20)
    assert need.bytes == 45
    assert replace(need, keeps_activations=True).bytes == 65, "a CUDA graph keeps its memory"
    need.require()


def test_a_cuda_graph_keeps_activations(runs: TinyRuns) -> None:
    setup = setup_of(runs)
    graph = replace(setup.config, train=replace(setup.config.train, cuda_graph=True))
    assert [replace(setup, config=each).memory[0].keeps_activations for each in (setup.config, graph)] == [False, True]


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("candidates", [{}, {"output_layer__kind": "contrastive"}], ids=["plain", "candidates"])
def test_batches_made_ahead_are_counted_as_they_are_allocated(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, resident: bool, candidates: dict[str, str]
) -> None:
    setup = setup_of(runs, data__target_vectors="other", data__tables_on_device=resident, **candidates)
    allocated: list[int] = []
    empty = torch.empty

    def counted(*sizes: Any, **options: Any) -> torch.Tensor:
        tensor = empty(*sizes, **options)
        allocated.append(tensor.nbytes)
        return tensor

    counted_bytes = setup.memory[0].streaming
    tables = setup.data.tables(CPU)
    monkeypatch.setattr(torch, "empty", counted)
    batches = stream_batches(setup.data.windows(), tables, CPU)
    next(batches)
    monkeypatch.undo()
    batches.close()
    assert counted_bytes == sum(allocated) > 0


def test_on_a_gpu_batches_made_ahead_are_pinned_in_main_memory_besides(runs: TinyRuns) -> None:
    setup = setup_of(runs)
    (here,) = setup.memory
    gpu, main = replace(setup, execution=replace(setup.execution, device=torch.device("cuda:0"))).memory
    assert gpu.streaming == main.streaming == here.streaming
    assert (main.device, main.weights, main.text) == (CPU, 0, here.text)


def test_processes_of_one_machine_need_the_memory_of_all_of_them(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, error_line: Fails
) -> None:
    setup = setup_of(runs)
    (alone,) = setup.memory
    (rank0,) = replace(setup, processes=with_directions(local_world_size=3, world_size=3)).memory
    always = alone.weights + rank0.streaming + alone.text
    assert rank0.bytes == 3 * always + max(3 * rank0.activations, alone.scoring)
    (elsewhere,) = replace(setup, processes=with_directions(rank=3, local_world_size=3, world_size=6)).memory
    assert (elsewhere.processes, elsewhere.scoring) == (3, 0), "rank 0, which evaluates, is on another machine"
    all_bytes = replace(alone, processes=3).bytes
    monkeypatch.setattr(memory, "free_memory", lambda device: all_bytes - 1)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    assert "on cpu for its 3 processes: weights, gradients and optimiser" in error_line(runs.status("run"))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    runs.run("run")


def with_directions(**values: int) -> Processes:
    processes = Processes(**values)
    processes.assign_directions(TrainConfig(streams=6))
    return processes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"train__epochs": 1e6, "train__updates": 0, "train__streams": 1, "train__window": 1},
            "999,999,999 are the most",
        ),
        ({"train__streams": 10**15}, "with train.window=5 need 6,000,000,000,000,000 tokens, targets included, and"),
        ({"train__window": 10**15}, "holds out only"),
    ],
)
def test_sizes_that_no_corpus_has(runs: TinyRuns, error_line: Fails, settings: dict[str, object], message: str) -> None:
    assert message in error_line(runs.status("run", **settings))
    assert not (runs.folder / "run").exists()
