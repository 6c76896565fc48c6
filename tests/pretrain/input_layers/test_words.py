"""A lookup of words: whole runs, with vectors of its own and tied with the softmax, and the models they leave."""

from typing import Any

import numpy as np
import pytest
import torch
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.stored import LexiconVectors
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns

OWN: dict[str, Any] = {
    "input_layer__kind": "words",
    "encoder__kind": "plain_lstm",
    "encoder__cell_size": None,
    "encoder__input_layer": "identity",
    "encoder__dropout": 0,
    "output_layer__kind": "softmax",
    "train__directions": ["forward"],
    "log__checkpoint_updates": 6,
}
TIED = OWN | {"output_layer__tied": True, "output_layer__projection_regularisation": 0.15}


@pytest.mark.parametrize("settings", [OWN, TIED], ids=["own", "tied"])
def test_the_gradient_of_a_vector_is_the_sum_over_its_roles(runs: TinyRuns, settings: dict[str, Any]) -> None:
    setup = runs.setup(**settings)
    state, network = setup.new_state(), setup.input_network
    rows: torch.nn.Parameter = network.rows  # type: ignore[union-attr,assignment]
    window = next(setup.data.windows())
    batch = setup.data.batch_maker().batch(window)

    def loss(vectors: torch.Tensor) -> torch.Tensor:
        states = state.encoder.direction("forward")(vectors).layer_states[-1]
        return state.output_layers.direction("forward")(states, batch.targets("forward")).total

    ids = torch.from_numpy(window.ids["forward"][:, :-1].astype(np.int64))
    as_input, as_output = (rows.detach().clone().requires_grad_() for _ in range(2))
    plain = loss(torch.stack([torch.stack([as_input[row] for row in stream]) for stream in ids]))
    expected = torch.autograd.grad(plain, as_input)[0]
    if settings is TIED:
        expected = expected + torch.autograd.grad(loss(as_output[ids].detach()), rows)[0]
    torch.testing.assert_close(torch.autograd.grad(loss(state.read(batch, "forward")), rows)[0], expected)


def test_it_learns_and_its_model_reads_words(runs: TinyRuns) -> None:
    run = runs.run("run", **TIED | {"encoder__projection_size": 16, "train__updates": 120})
    *_, last = read_metrics(run.path, "evaluation")
    assert last["vocabulary_perplexity"] < 0.5 * last["constant_vocabulary_perplexity"]
    vectors = open_word_vectors(run.path)
    model = read_model_directory(run.path)
    assert isinstance(vectors, LexiconVectors)
    assert model.output_layer.weights is not None
    assert "shared.rows" not in model.output_layer.weights
    assert ElmoC.from_pretrained(run.path).embed(["w1", "unheard-of"]).shape == (2, 2, 16)
    assert runs.run("on", "--init-from", str(run.path), **TIED | {"encoder__projection_size": 16})
