"""The contract of output layers: what each kind of `KINDS`, and the example of docs/extending.md, promises.

Values of each kind are compared with a slow twin in the test file of the kind.
"""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from pretrain.config import KINDS, load_config
from pretrain.data.windows import Position
from pretrain.setup import TrainingSetup, set_up
from tests.pages import example
from tests.pretrain.conftest import TinyRuns, assert_same
from tests.pretrain.output_layers.test_runs import LAYERS, settings_of
from torch import Tensor

from pretrain.output_layers import Loss, OutputLayer, Targets

KINDS_AND_EXAMPLE = [*LAYERS, "example"]


def setup_of(runs: TinyRuns, kind: str, **changes: object) -> TrainingSetup:
    settings = settings_of("cosine" if kind == "example" else kind, **changes)
    sets = [each.removeprefix("--set=") for each in runs.arguments("", **settings)[2:]]
    config = load_config(runs.config, sets)
    if kind == "example":
        config = replace(config, output_layer=example("docs/extending.md", "L1Settings")["L1Settings"]())
    return set_up(config)


def first_targets(setup: TrainingSetup, own: slice = slice(None)) -> Targets:
    """Of the streams `own` of the first window that has a target without a vector, where vectors are read."""
    position = Position()
    for window in setup.data.windows():
        has_vector = setup.data.targets.rows[window.ids["forward"][:, 1:]].any(axis=-1)
        if not setup.data.reads_targets or not has_vector.all():
            break
        position = window.next
    window = next(setup.data.windows(position, own=own))
    return setup.data.batch_maker().batch(window).targets("forward")


def states_of(setup: TrainingSetup) -> Tensor:
    """Random top layer states [B, T, P]."""
    shape = (setup.data.streams, setup.data.window, setup.config.encoder.projection_size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def gradients_of(layer: OutputLayer, loss: Loss) -> list[Tensor]:
    gradients = torch.autograd.grad(loss.total, list(layer.parameters()), allow_unused=True)
    return [
        torch.zeros_like(weight) if gradient is None else gradient.to_dense()
        for weight, gradient in zip(layer.parameters(), gradients, strict=True)
    ]


def test_all_kinds_are_here() -> None:
    assert {values["kind"] for values in LAYERS.values()} == KINDS["output_layer"].keys()


@pytest.mark.parametrize("kind", KINDS_AND_EXAMPLE)
def test_every_target_is_counted_or_masked(runs: TinyRuns, kind: str) -> None:
    setup = setup_of(runs, kind)
    targets = first_targets(setup)
    loss = setup.output_layers.direction("forward")(states_of(setup), targets)
    masked = 0
    if setup.data.reads_targets:
        masked = int((~setup.data.targets.rows[targets.ids.numpy()].any(axis=-1)).sum())
        assert masked > 0
    assert (int(loss.masked), int(loss.counted)) == (masked, targets.ids.numel() - masked)
    assert [each.shape for each in loss] == [()] * 3
    assert loss.total.isfinite()


@pytest.mark.parametrize("kind", KINDS_AND_EXAMPLE)
def test_the_loss_of_a_window_is_the_sum_of_those_of_its_streams(runs: TinyRuns, kind: str) -> None:
    """So several processes, which read different streams, have the gradients of one."""
    setup = setup_of(runs, kind)
    layer = setup.output_layers.direction("forward")
    states = states_of(setup).requires_grad_()
    whole = layer(states, first_targets(setup))
    expected = [*whole, *gradients_of(layer, whole._replace(total=whole.total + 0 * states.sum()))]
    found = [torch.zeros_like(each) for each in expected]
    layer = deepcopy(layer)
    for stream in range(setup.data.streams):
        own = slice(stream, stream + 1)
        loss = layer(states[own], first_targets(setup, own))
        found = [total + each for total, each in zip(found, [*loss, *gradients_of(layer, loss)], strict=True)]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS_AND_EXAMPLE)
def test_what_is_streamed_is_what_the_whole_tables_hold(runs: TinyRuns, kind: str) -> None:
    setup = setup_of(runs, kind)
    window = next(setup.data.windows())
    targets = setup.data.batch_maker().batch(window).targets("forward")
    ids = window.ids["forward"][:, 1:]
    np.testing.assert_array_equal(targets.ids.numpy(), ids)
    rows = np.asarray(setup.data.targets.rows, dtype=np.float32)
    candidates = targets.candidates
    if candidates is None:
        assert (targets.vectors is not None) == setup.data.reads_targets
        if targets.vectors is not None:
            np.testing.assert_array_equal(targets.vectors.numpy(), rows[ids])
        return
    assert targets.vectors is None
    assert setup.data.sampler is not None
    types, shared = window.candidates["forward"]
    assert candidates.shared == shared
    np.testing.assert_array_equal(types[candidates.labels.numpy()], setup.data.sampler.class_of(ids))
    if setup.data.reads_targets:
        assert candidates.vectors is not None
        np.testing.assert_array_equal(candidates.vectors.numpy(), rows[types])
    else:
        assert candidates.ids is not None
        np.testing.assert_array_equal(candidates.ids.numpy(), types)


@pytest.mark.parametrize("kind", KINDS_AND_EXAMPLE)
def test_a_saved_and_loaded_copy_is_the_same(runs: TinyRuns, kind: str) -> None:
    setup, other = setup_of(runs, kind), setup_of(runs, kind, train__seed=2)
    layer, copy = (each.output_layers.direction("forward") for each in (setup, other))
    with torch.no_grad():
        for weight in layer.parameters():
            weight.add_(0.1)
    copy.load_state_dict(layer.state_dict())
    states, targets = states_of(setup), first_targets(setup)
    assert_same(list(copy(states, targets)), list(layer(states, targets)))
    assert torch.equal(copy.predict(states), layer.predict(states))
    records = [
        each.config.output_layer.record(corpus=each.data.corpus, targets=each.data.targets) for each in (setup, other)
    ]
    assert json.loads(json.dumps(records[0])) == records[1]
    assert records[0]["kind"] == setup.config.output_layer.kind


@pytest.mark.parametrize("kind", KINDS_AND_EXAMPLE)
def test_held_out_predictions_are_scored_and_parts_are_scored_alone(runs: TinyRuns, kind: str) -> None:
    setup = setup_of(runs, kind)
    settings, data = setup.config.output_layer, setup.data
    layer = setup.output_layers.direction("forward")
    options = {"targets": data.targets, "candidates": 18, "device": torch.device("cpu")}
    scorer = settings.scorer(corpus=data.corpus, counts_read=data.counts_read, **options)
    ids = np.random.default_rng(3).integers(0, data.corpus.types, 60).astype(np.uint32)
    states = torch.randn(60, setup.config.encoder.projection_size, generator=torch.Generator().manual_seed(3))
    parts = {"": slice(None), "first": slice(0, 25), "rest": slice(25, 60)}
    with torch.no_grad():
        predictions = layer.predict(states)
        scored = scorer.score(layer, predictions, ids, parts)
        alone = scorer.score(layer, predictions[25:], ids[25:], {"": slice(None)})[""]
    assert predictions.dtype == torch.float32
    assert scored.keys() == parts.keys()
    assert {settings.metric, "reciprocal_rank", "constant_reciprocal_rank"} <= scored[""].keys()
    assert scored["rest"] == pytest.approx(alone, rel=1e-5)
    assert scored[""]["reciprocal_rank"] == pytest.approx(
        (25 * scored["first"]["reciprocal_rank"] + 35 * scored["rest"]["reciprocal_rank"]) / 60
    )
    assert all(np.isfinite(value) for value in scored[""].values())


@pytest.mark.parametrize("kind", KINDS_AND_EXAMPLE)
def test_states_and_vectors_of_zeros_have_finite_gradients(runs: TinyRuns, kind: str) -> None:
    setup = setup_of(runs, kind)
    layer = setup.output_layers.direction("forward")
    states = torch.zeros_like(states_of(setup)).requires_grad_()
    targets = first_targets(setup)
    if targets.vectors is not None:
        targets = targets._replace(vectors=torch.zeros_like(targets.vectors))
    elif targets.candidates is not None and targets.candidates.vectors is not None:
        zeros = targets.candidates._replace(vectors=torch.zeros_like(targets.candidates.vectors))
        targets = targets._replace(candidates=zeros)
    loss = layer(states, targets)
    if setup.data.reads_targets:
        assert (float(loss.total.detach()), int(loss.counted)) == (0, 0)
    assert torch.autograd.grad(loss.total, states, retain_graph=True)[0].isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients_of(layer, loss))
