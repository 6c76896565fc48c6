"""The contract of input layers: what each kind of `KINDS` promises."""

from typing import Any

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.model_directory import write_model_directory
from pretrain.config import KINDS
from pretrain.setup import TrainingSetup, initialise_from
from tests.pretrain.conftest import TinyRuns

from elmoc.encoders import DIRECTIONS

LAYERS: dict[str, dict[str, Any]] = {
    "vectors": {},
    "character_cnn": {"filters": [[1, 6], [2, 6]], "characters": 10},
    "words": {},
    "subwords": {},
    "factorised": {"rank": 3},
    "alone": {"base_size": 12, "inner_size": 20, "dropout": 0},
}
TRAINED = [kind for kind in LAYERS if kind != "vectors"]
# what a layer can be tied with, and says where it cannot
TIED = {"output_layer__kind": "softmax", "output_layer__tied": True}


def setup_of(runs: TinyRuns, kind: str, tiny_subwords: Corpus, **changes: Any) -> TrainingSetup:
    if kind == "subwords":
        runs.corpus = tiny_subwords.path
        changes = {"data__target_vectors": "none", "output_layer__kind": "softmax", **changes}
    given = {f"input_layer__{name}": value for name, value in LAYERS[kind].items()}
    return runs.setup(input_layer__kind=kind, **given, **changes)


def test_all_kinds_are_here() -> None:
    assert LAYERS.keys() == KINDS["input_layer"].keys()


@pytest.mark.parametrize("kind", LAYERS)
def test_a_window_has_the_vectors_that_its_words_have_alone(runs: TinyRuns, kind: str, tiny_subwords: Corpus) -> None:
    setup = setup_of(runs, kind, tiny_subwords)
    state = setup.new_state()
    window = next(setup.data.windows())
    batch = setup.data.batch_maker().batch(window)
    for direction in DIRECTIONS:
        ids = window.ids[direction][:, :-1]
        vectors = state.read(batch, direction)
        assert vectors.dtype == torch.float32
        rows = torch.from_numpy(np.array(setup.data.inputs.rows))
        for place in np.ndindex(ids.shape):
            row = rows[int(ids[place])]
            alone = row if state.input_network is None else state.input_network(row[None])[0]
            torch.testing.assert_close(vectors[place], alone.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", TRAINED)
def test_its_gradient_is_the_sum_of_those_of_both_directions(runs: TinyRuns, kind: str, tiny_subwords: Corpus) -> None:
    setup = setup_of(runs, kind, tiny_subwords)
    state = setup.new_state()
    network = state.input_network
    assert network is not None
    weights = list(network.parameters())
    batch = setup.data.batch_maker().batch(next(setup.data.windows()))
    parts = [torch.autograd.grad(state.read(batch, name).square().sum(), weights) for name in DIRECTIONS]
    sum(state.read(batch, name).square().sum() for name in DIRECTIONS).backward()  # type: ignore[union-attr]
    for weight, *own in zip(weights, *parts, strict=True):
        torch.testing.assert_close(weight.grad, sum(own), rtol=1e-4, atol=1e-5)
        assert weight.grad.any()


@pytest.mark.parametrize("kind", TRAINED)
def test_what_is_stored_makes_the_same_vectors_and_is_taken_over(
    runs: TinyRuns, kind: str, tiny_subwords: Corpus
) -> None:
    setup, other = (setup_of(runs, kind, tiny_subwords, train__seed=seed) for seed in (1, 2))
    network, copy = setup.input_network, other.input_network
    assert network is not None
    assert copy is not None
    rows = torch.from_numpy(np.array(setup.data.inputs.rows))
    vectors = network(rows).detach()
    stored = network.stored()
    np.testing.assert_allclose(stored.lookup(setup.data.corpus.lexicon), vectors.numpy(), rtol=1e-4, atol=1e-5)
    assert stored.size == setup.config.encoder.projection_size
    assert not torch.allclose(copy(rows), vectors)
    copy.load(stored)
    torch.testing.assert_close(copy(rows).detach(), vectors)
    # Vectors are divided into factors anew, and rounded.
    assert kind == "factorised" or copy.stored().fingerprint == stored.fingerprint


@pytest.mark.parametrize("kind", TRAINED)
def test_the_vectors_of_another_kind_are_refused(runs: TinyRuns, kind: str, tiny_subwords: Corpus) -> None:
    words = runs.corpus
    with pytest.raises(InputError, match=r"input_layer\.rank=9 must be"):
        runs.setup(input_layer__kind="factorised", input_layer__rank=9)
    setup = setup_of(runs, kind, tiny_subwords)
    parts = (setup.encoder, setup.output_layers, {})
    # A factorised lookup takes over the vectors of words, and they take over its own.
    alike = {kind, "words", "factorised"} if kind in ("words", "factorised") else {kind}
    for other in set(LAYERS) - alike:
        runs.corpus = words
        write_model_directory(runs.folder / other, setup_of(runs, other, tiny_subwords).model_directory({}))
        with pytest.raises(InputError, match=r"choose its input_layer\.kind"):
            initialise_from(str(runs.folder / other), *parts, data=setup.data, network=setup.input_network)


@pytest.mark.parametrize("kind", LAYERS)
def test_it_is_tied_with_a_softmax_or_says_why_not(runs: TinyRuns, kind: str, tiny_subwords: Corpus) -> None:
    if kind in ("words", "subwords", "factorised", "alone"):
        setup = setup_of(runs, kind, tiny_subwords, **TIED)
        layer, network = setup.output_layers.direction("forward"), setup.input_network
        assert network is not None
        rows = network.class_rows()
        assert rows is not None
        states = torch.randn(4, rows.shape[1])
        torch.testing.assert_close(layer.scores(states), states @ rows.T)  # type: ignore[operator]
        assert [name for name, _ in layer.named_parameters()] == ["bias"]
        scale = getattr(network, "scale", 1.0)
        everything = network(torch.from_numpy(np.array(setup.data.inputs.rows)))
        torch.testing.assert_close(everything, scale * rows)
        return
    with pytest.raises(InputError, match=r"output_layer\.tied needs"):
        setup_of(runs, kind, tiny_subwords, **TIED)
