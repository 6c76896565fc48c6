"""Checkpoints: one that is damaged, or does not fit the run, is named before anything is changed."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from pretrain.config import load_config
from pretrain.run.directory import RunDirectory, read_checkpoint
from pretrain.setup import TrainingSetup, set_up
from pretrain.train import starting_state
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint

Fails = Callable[[int], str]
Contents = dict[str, Any]
SETTINGS = {"log__checkpoint_updates": 5, "log__keep": 3, "log__every_updates": 3, "evaluation__every_updates": 4}
ONE_BEFORE = "remove it to go on from the one before"


@pytest.fixture(scope="module")
def module_runs(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Corpus) -> TinyRuns:
    return TinyRuns(tmp_path_factory.mktemp("checkpoints"), tiny_corpus.path)


@pytest.fixture(scope="module")
def whole(module_runs: TinyRuns) -> RunDirectory:
    """A run of twelve updates, with checkpoints after some of them."""
    return module_runs.run("whole", **SETTINGS)


@pytest.fixture(scope="module")
def setup(module_runs: TinyRuns, whole: RunDirectory) -> TrainingSetup:
    """What it was set up with."""
    overrides = [argument.removeprefix("--set=") for argument in module_runs.arguments("whole", **SETTINGS)[2:]]
    return set_up(load_config(module_runs.config, overrides))


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
    assert_same(last_checkpoint(run), last_checkpoint(whole), but=("seconds", "longest_evaluation", "metrics_bytes"))
    assert without_speed(run) == without_speed(whole)


def change(run: RunDirectory, values: Contents) -> Path:
    """Change what the newest checkpoint holds; None as a value removes the key."""
    path = run.checkpoint_paths()[-1]
    state = {name: value for name, value in (last_checkpoint(run) | values).items() if value is not None}
    torch.save(state, path)
    return path


def test_a_line_of_the_log_covers_its_whole_interval_after_a_resume(
    runs: TinyRuns, run: RunDirectory, whole: RunDirectory
) -> None:
    assert last_checkpoint(run)["unlogged"]["forward"].shape == (1, 3), "update 10, after the line of update 9"
    runs.run("run", "--resume", **SETTINGS)
    assert_same_end(run, whole)


def test_the_one_before_a_damaged_one_leads_to_the_same_end(
    runs: TinyRuns, run: RunDirectory, whole: RunDirectory, error_line: Fails
) -> None:
    path = run.checkpoint_path(10)
    content = path.read_bytes()
    path.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    before = {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    error = error_line(runs.status("run", "--resume", **SETTINGS))
    assert error.startswith(f"error: {path} is damaged (the content of ")
    assert error.endswith(ONE_BEFORE)
    assert {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()} == before
    path.unlink()
    runs.run("run", "--resume", **SETTINGS)
    assert_same_end(run, whole)


def test_the_only_one_that_is_damaged_lets_the_run_begin_again(
    runs: TinyRuns, run: RunDirectory, whole: RunDirectory, error_line: Fails
) -> None:
    for path in run.checkpoint_paths()[:-1]:
        path.unlink()
    run.checkpoint_path(10).write_bytes(b"")
    assert error_line(runs.status("run", "--resume", **SETTINGS)).endswith("remove it to begin the run again")
    run.checkpoint_path(10).unlink()
    runs.run("run", "--resume", **SETTINGS)
    assert_same_end(run, whole)


def test_no_flipped_bit_is_read_as_if_it_were_right(run: RunDirectory) -> None:
    path = run.checkpoint_path(10)
    content, state = path.read_bytes(), last_checkpoint(run)
    refused = 0
    for place in range(7, len(content), len(content) // 60):
        path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
        try:
            found = read_checkpoint(path)
        except InputError:
            refused += 1
        else:  # what nobody reads: padding, dates of the archive
            assert_same(found, state)
    assert refused > 20


def first_moment(state: Contents, value: Any, name: str = "exp_avg") -> Contents:
    """The optimisers with another moment of the first parameter."""
    adam = state["optimisers"]["forward"]
    moments = {**adam["state"], 0: {**adam["state"][0], name: value}}
    return {"optimisers": {**state["optimisers"], "forward": {**adam, "state": moments}}}


def weight(state: Contents, value: Any, kind: str = "encoder") -> Contents:
    """Weights with another first tensor."""
    return {kind: {**state[kind], next(iter(state[kind])): value}}


WRONG: dict[str, tuple[Callable[[Contents], Contents], str]] = {
    "a missing field": (lambda state: {"words": None}, "the field words is missing"),
    "an unknown field": (lambda state: {"weather": 1}, "unknown key weather"),
    "another type": (lambda state: {"update": "ten"}, "update must be of type int, not 'ten'"),
    "another type inside": (lambda state: {"data": {"data.corpus": 3}}, "data"),
    "another type of weights": (lambda state: weight(state, [1.0]), "encoder[...] must be of type Tensor, not list"),
    "another update than its name's": (lambda state: {"update": 9}, "update is 9, which is not in its name"),
    "an update after the end": (lambda state: {"updates": 3}, "update must be at least 0 and at most 3, not 10"),
    "a negative number": (lambda state: {"words": -1}, "words must be at least 0, not -1"),
    "no number": (lambda state: {"seconds": math.nan}, "seconds must be a finite number, not nan"),
    "the best one later": (lambda state: {"best_update": 11}, "best_update must be at least 0 and at most 10, not 11"),
    "a negative epoch": (
        lambda state: {"position": {"epoch": -1, "shard": 0, "window": 0}},
        "position.epoch must be at least 0, not -1",
    ),
    "a device that is none": (lambda state: {"device": "toaster"}, "device must be one of cpu, cuda, not 'toaster'"),
    "weights that are not finite": (
        lambda state: weight(state, next(iter(state["encoder"].values())) * math.inf),
        "encoder.forward_lm.input_projection.weight has a number that is not finite",
    ),
    "weights of another shape": (
        lambda state: weight(state, torch.zeros(3), "heads"),
        "heads.forward_lm.weight has the shape [3], where [8, 8] is expected",
    ),
    "weights of another precision": (
        lambda state: weight(state, torch.zeros(8, 8, dtype=torch.float64), "heads"),
        "heads.forward_lm.weight has the type torch.float64, where torch.float32 is expected",
    ),
    "weights that are not dense": (
        lambda state: weight(state, torch.zeros(8, 8).to_sparse(), "heads"),
        "heads.forward_lm.weight is not a dense tensor",
    ),
    "too few weights": (
        lambda state: {"heads": {name: each for name, each in state["heads"].items() if "bias" not in name}},
        "lacks tensors: heads.backward_lm.bias, heads.forward_lm.bias",
    ),
    "too many weights": (
        lambda state: {"heads": state["heads"] | {"more": torch.zeros(1)}},
        "has unknown tensors: heads.more",
    ),
    "moments of another shape": (
        lambda state: first_moment(state, torch.zeros(2)),
        "optimisers.forward.0.exp_avg has the shape [2], where [8, 8] is expected",
    ),
    "moments that are not finite": (
        lambda state: first_moment(state, torch.full((8, 8), math.nan), "exp_avg_sq"),
        "optimisers.forward.0.exp_avg_sq has a number that is not finite",
    ),
    "no moments": (
        lambda state: {"optimisers": state["optimisers"] | {"backward": {"state": {}}}},
        "lacks tensors: optimisers.backward.0.exp_avg",
    ),
    "no optimiser": (lambda state: {"optimisers": {}}, "lacks tensors: optimisers"),
    "a generator of another size": (
        lambda state: {"generators": dict.fromkeys(state["generators"], torch.zeros(16, dtype=torch.uint8))},
        "generators.forward has the shape [16], where [5056] is expected",
    ),
    "a generator that is none": (
        lambda state: {"generators": {n: torch.full_like(each, 255) for n, each in state["generators"].items()}},
        "generators.forward is not the state of a random generator",
    ),
    "no recurrent state": (
        lambda state: {"recurrent": dict.fromkeys(state["recurrent"])} | {"best_update": 0},
        "lacks tensors: recurrent.backward.0.0",
    ),
    "the recurrent state of fewer streams": (
        lambda state: {
            "recurrent": {
                name: [tuple(part[:2] for part in layer) for layer in layers]
                for name, layers in state["recurrent"].items()
            }
        },
        "recurrent.forward.0.0 has the shape [2, 8], where [4, 8] is expected",
    ),
    "steps that are none": (
        lambda state: {"unlogged": dict.fromkeys(state["unlogged"], torch.zeros(2, 2))},
        "unlogged.forward has the shape [2, 2], where [2, 3] is expected",
    ),
    "steps of fewer updates in one direction": (
        lambda state: {"unlogged": state["unlogged"] | {"forward": torch.zeros(2, 3, dtype=torch.float64)}},
        "unlogged.backward has the shape [1, 3], where [2, 3] is expected",
    ),
    "steps of one direction": (
        lambda state: {"unlogged": {"forward": state["unlogged"]["forward"]}},
        "lacks tensors: unlogged.backward",
    ),
    "a newer version": (lambda state: {"version": 3}, "version 3 of the format elmoc-checkpoint, this elmoc reads"),
}


@pytest.mark.parametrize("name", WRONG)
def test_contents_that_do_not_fit_are_named_before_anything_is_changed(
    run: RunDirectory, setup: TrainingSetup, name: str
) -> None:
    wrong, message = WRONG[name]
    path = change(run, wrong(last_checkpoint(run)))
    before = {each: value.clone() for each, value in setup.encoder.state_dict().items()}
    with pytest.raises(InputError) as error:
        starting_state(setup, run, run.resume(setup.config))
    sentence = str(error.value)
    assert sentence.startswith(str(path))
    assert message in sentence
    assert sentence.endswith(ONE_BEFORE)
    assert_same(dict(setup.encoder.state_dict()), before)


@pytest.mark.parametrize(("shard", "window"), [(4, 0), (0, 10**6)])
def test_a_window_that_is_not_there_speaks_against_the_corpus_and_not_the_checkpoint(
    run: RunDirectory, setup: TrainingSetup, shard: int, window: int
) -> None:
    change(run, {"position": {"epoch": 0, "shard": shard, "window": window}})
    with pytest.raises(InputError) as error:
        starting_state(setup, run, run.resume(setup.config))
    assert str(error.value) == (
        f"window {window} of group {shard}, with which the run goes on, is not in {setup.data.corpus.path}: resume it "
        "with the corpus that it was started with"
    )


def test_a_run_without_a_best_evaluation_goes_on(run: RunDirectory, setup: TrainingSetup) -> None:
    path, state = run.checkpoint_paths()[-1], last_checkpoint(run)
    torch.save(state | {"best_update": None, "best_cosine": None}, path)
    assert starting_state(setup, run, run.resume(setup.config)).best_score == -math.inf


@pytest.mark.parametrize("name", ["config.json", "start.json", "metrics.jsonl", "checkpoints"])
def test_files_of_a_run_that_are_none(runs: TinyRuns, run: RunDirectory, error_line: Fails, name: str) -> None:
    for path in run.checkpoint_paths() if name == "start.json" else ():
        path.unlink()  # it is read when the run begins again
    path = run.path / name
    path.rename(run.path / "moved")
    path.touch() if name == "checkpoints" else path.mkdir()
    error = error_line(runs.status("run", "--resume", **SETTINGS))
    assert str(path) in error
    assert ": " in error.removeprefix("error: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "start.json: the whole must be of type object"),
        ('{"launch": null}', "start.json: the field init_from is missing: start another run"),
        ('{"init_from": 3}', "start.json: init_from must be of type str or null, not 3: start another run"),
        ('{"init_from": null, "more": 1}', "start.json: unknown key more"),
        ("{", "start.json is not valid JSON"),
    ],
)
def test_a_damaged_start(runs: TinyRuns, run: RunDirectory, error_line: Fails, content: str, message: str) -> None:
    for path in run.checkpoint_paths():
        path.unlink()
    (run.path / "start.json").write_text(content)
    assert message in error_line(runs.status("run", "--resume", **SETTINGS))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "config.json: the whole must be of type object"),
        ('{"train": []}', "config.json: train must be a section: start another run"),
        ('{"train": {"streams": "many"}}', "config.json: train.streams must be of type int, not 'many'"),
        ('{"train": {"streams": 0}}', "config.json: train.streams must be at least 1, not 0: start another run"),
        ('{"weather": {}}', "config.json: unknown key weather"),
        (
            '{"encoder": {"kind": "gru"}}',
            "config.json: encoder.kind must be one of lstm, plain_lstm, transformer, not 'gru'",
        ),
        ("{", "config.json is not valid JSON"),
    ],
)
def test_a_damaged_config(runs: TinyRuns, run: RunDirectory, error_line: Fails, content: str, message: str) -> None:
    run.config.write_text(content)
    assert message in error_line(runs.status("run", "--resume", **SETTINGS))


def test_names_that_are_no_runs(runs: TinyRuns, error_line: Fails) -> None:
    (runs.folder / "run").write_text("a file")
    assert (
        error_line(runs.status("run"))
        == f"error: {runs.folder / 'run'} is not a directory, as a run is: choose another name"
    )
    assert "holds no run to resume" in error_line(runs.status("run", "--resume"))
    assert (runs.folder / "run").read_text() == "a file"
