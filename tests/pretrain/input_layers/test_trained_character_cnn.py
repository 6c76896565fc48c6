"""A trained character CNN: the vectors of the frozen one, gradients of both directions, whole runs and their models."""

from typing import Any

import pytest
import torch
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.character_cnn import CharacterCnnVectors, spelled
from pretrain.input_layers.character_cnn import CharacterCnnInput, CharacterNetwork
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, assert_same, last_checkpoint

from elmoc.encoders import DIRECTIONS

CNN: dict[str, Any] = {
    "input_layer__kind": "character_cnn",
    "input_layer__character_size": 4,
    "input_layer__filters": [[1, 6], [2, 6]],
    "input_layer__highways": 1,
    "input_layer__characters": 10,
    "data__input_vectors": "none at all",
    "log__checkpoint_updates": 6,
}
ELMO: dict[str, Any] = CNN | {
    "encoder__input_layer": "identity",
    "encoder__layer_norm": False,
    "output_layer__kind": "sampled",
    "output_layer__samples": 6,
    "data__target_vectors": "none at all",
}


def test_what_is_left_out_behind_the_longest_word_changes_nothing() -> None:
    torch.manual_seed(0)
    settings = CharacterCnnInput(character_size=4, filters=((1, 3), (3, 5)), highways=2, characters=12)
    network = CharacterNetwork(settings.network(6))
    rows = torch.from_numpy(spelled(["a", "bcd", "ef"], 12).astype("int16"))
    assert rows.shape == (3, 12)
    whole = network.network(rows.long())
    torch.testing.assert_close(network(rows), whole)
    gradients = [
        torch.autograd.grad(each.square().sum(), list(network.parameters())) for each in (network(rows), whole)
    ]
    torch.testing.assert_close(*gradients)
    assert all(gradient.any() for gradient in gradients[0]), "every weight is trained"


@pytest.mark.parametrize("settings", [CNN, ELMO], ids=["cnn", "elmo"])
def test_a_resumed_run_ends_the_same(runs: TinyRuns, settings: dict[str, Any]) -> None:
    run = runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)
    parts = {*DIRECTIONS, "input", *(["shared"] if settings is ELMO else [])}
    assert last_checkpoint(run)["optimisers"].keys() == parts


def test_going_on_takes_the_network_over(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs.run("run", **CNN)
    model = read_model_directory(run.path)
    again = runs.run("again", "--init-from", str(run.path), **CNN | {"train__updates": 1, "log__keep": 10})
    first = torch.load(again.checkpoints / f"{0:09d}.pt")
    assert_same(dict(first["encoder"]), dict(model.encoder.weights()))
    elmo = ElmoC.from_pretrained(run.path)
    assert isinstance(elmo.word_vectors, CharacterCnnVectors)
    stored = {f"network.{name}": weight for name, weight in elmo.word_vectors.weights.items()}
    assert_same(dict(first["input"]), stored)
    capsys.readouterr()
    assert runs.status("other", "--init-from", str(run.path), **CNN | {"input_layer__character_size": 5}) == 1
    assert "character_size" in capsys.readouterr().err
    vectors = runs.run("vectors", encoder__projection_size=8)
    assert runs.status("none", "--init-from", str(vectors.path), **CNN) == 1
    assert "character CNN" in capsys.readouterr().err
