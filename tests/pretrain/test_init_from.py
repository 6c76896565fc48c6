"""Going on from another model: what is taken from it, what starts anew, and models that do not fit."""

from collections.abc import Callable

import pytest
import torch
from elmoc.model_directory import read_model_directory
from pretrain.run.directory import RunDirectory
from tests.pretrain.conftest import TinyRuns, assert_same

Fails = Callable[[int], str]


def first_checkpoint(run: RunDirectory) -> dict:
    path = run.checkpoints / f"{0:09d}.pt"
    assert path in run.checkpoint_paths()
    return torch.load(path)


def assert_same_start(run: RunDirectory, encoder: dict, heads: dict) -> None:
    start = first_checkpoint(run)
    assert_same(dict(start["encoder"]), dict(encoder))
    assert_same(dict(start["heads"]), dict(heads))


def test_init_from_starts_with_the_models_weights(runs: TinyRuns) -> None:
    model = read_model_directory(runs.run("first").path)
    settings = {"train__seed": 9, "train__updates": 1, "encoder__dropout": 0.3}
    run = runs.run("second", "--init-from", str(runs.folder / "first"), **settings)
    assert_same_start(run, model.encoder.weights(), model.output_layer.weights)


def test_the_training_record_has_the_recipe_and_what_was_before(runs: TinyRuns) -> None:
    first = runs.run("first", train__updates=1, card__licence="CC0", card__name="")
    second = runs.run("second", "--init-from", str(first.path), train__updates=1, card__name="Ada's")
    before, after = (read_model_directory(run.path).training for run in (first, second))
    assert before["licence"] == "CC0"
    assert "name" not in before
    assert before["recipe"]["encoder.cell_size"] == 12
    assert "train.device" not in before["recipe"]
    assert after["started_from"] == before
    assert after["name"] == "Ada's"
    assert "Ada's" in (second.model / "README.md").read_text()


def test_init_from_takes_one_direction_of_two(runs: TinyRuns, error_line: Fails) -> None:
    model = read_model_directory(runs.run("first").path)
    init = ("--init-from", str(runs.folder / "first"))
    run = runs.run("second", *init, train__directions=["backward"], train__updates=1)
    states = [
        {name: value for name, value in weights.items() if name.startswith("backward")}
        for weights in (model.encoder.weights(), model.output_layer.weights)
    ]
    assert_same_start(run, *states)
    status = runs.status("third", "--init-from", str(run.path))
    assert "it lacks the forward direction" in error_line(status)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder__cell_size": 10}, "cell_size"),
        ({"data__input_vectors": "other"}, "word_vector_size"),
        ({"data__input_vectors": "swapped"}, "the table swapped"),
    ],
    ids=["sizes", "width", "vectors"],
)
def test_init_from_a_model_that_does_not_fit(
    runs: TinyRuns, error_line: Fails, settings: dict[str, object], message: str
) -> None:
    runs.run("first", train__updates=1)
    status = runs.status("second", "--init-from", str(runs.folder / "first"), **settings)
    assert message in error_line(status)
    assert not (runs.folder / "second").exists()
