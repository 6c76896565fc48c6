"""ALONE and factorised vectors, trained whole: runs go on exactly, and leave models of any string."""

from typing import Any

import pytest
import torch
from elmoc.model import ElmoC
from elmoc.word_vectors.alone import AloneVectors
from elmoc.word_vectors.opening import open_word_vectors
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, last_checkpoint

TIED: dict[str, Any] = {"output_layer__kind": "softmax", "output_layer__tied": True, "log__checkpoint_updates": 6}
ALONE = TIED | {
    "input_layer__kind": "alone",
    "input_layer__base_size": 12,
    "input_layer__inner_size": 40,
    "input_layer__filter": "binary",
    "input_layer__fixed_base": True,
    "input_layer__dropout": 0.5,
}
FACTORISED = TIED | {"input_layer__kind": "factorised", "input_layer__rank": 3}


@pytest.mark.parametrize("settings", [ALONE, FACTORISED | {"optimiser__kind": "sgd"}], ids=["alone", "factorised"])
def test_a_resumed_run_ends_the_same(runs: TinyRuns, settings: dict[str, Any]) -> None:
    runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)


def test_a_fixed_base_stays_as_it_is_drawn(runs: TinyRuns) -> None:
    network = runs.setup(**ALONE).input_network
    assert network is not None
    before = network.state_dict()
    after = last_checkpoint(runs.run("run", **ALONE))["input"]
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert changed == ["network.inner.weight", "network.outer.weight"]


def test_units_are_dropped_for_a_whole_window_and_in_training_alone(runs: TinyRuns) -> None:
    setup = runs.setup(**ALONE)
    state, network = setup.new_state(), setup.input_network
    assert network is not None
    rows = torch.from_numpy(setup.data.inputs.rows[:5])
    state.set_training(False)
    whole = network(rows)
    torch.testing.assert_close(whole, network(rows))
    state.set_training(True)
    first, same, other = (network(rows, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    torch.testing.assert_close(first, same)
    assert not torch.allclose(first, other)
    # On average nothing changes.
    twice = sum(network(rows, torch.Generator().manual_seed(seed)) for seed in range(400)) / 400
    torch.testing.assert_close(twice, whole, atol=0.1, rtol=0.3)


@pytest.mark.parametrize("settings", [ALONE, FACTORISED], ids=["alone", "factorised"])
def test_it_learns_and_a_run_goes_on_from_its_model(runs: TinyRuns, settings: dict[str, Any]) -> None:
    sizes = {"encoder__projection_size": 16, "train__updates": 120, "input_layer__dropout": 0.1}
    if settings is FACTORISED:
        del sizes["input_layer__dropout"]
    run = runs.run("run", **settings | sizes)
    *_, last = read_metrics(run.path, "evaluation")
    assert last["vocabulary_perplexity"] < 0.7 * last["constant_vocabulary_perplexity"]
    vectors = open_word_vectors(run.path)
    assert isinstance(vectors, AloneVectors) == (settings is ALONE)
    states = ElmoC.from_pretrained(run.path).embed(["w1", "unheard-of"])
    assert states.shape == (3, 2, 32)
    assert states.isfinite().all()
    again = runs.run("on", "--init-from", str(run.path), **settings | sizes | {"train__updates": 1})
    first, *_ = read_metrics(again.path, "evaluation")
    assert first["vocabulary_perplexity"] == pytest.approx(last["vocabulary_perplexity"], rel=0.05)
