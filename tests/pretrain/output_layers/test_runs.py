"""Whole runs against each output layer: they learn, go on exactly, and leave models that read words."""

from typing import Any

import pytest
import torch
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, assert_same, last_checkpoint, needs_bf16

from elmoc.encoders import DIRECTIONS

LAYERS: dict[str, dict[str, Any]] = {
    "cosine": {"kind": "continuous"},
    "l2": {"kind": "continuous", "loss": "l2"},
    "von_mises_fisher": {"kind": "continuous", "loss": "von_mises_fisher"},
    "max_margin": {"kind": "continuous", "loss": "max_margin"},
    "contrastive": {"kind": "contrastive", "cosine_weight": 0.5},
    "softmax": {"kind": "softmax", "types": 15, "projection_regularisation": 0.1},
    "sampled": {"kind": "sampled", "types": 14, "samples": 6},
    "fixed": {"kind": "fixed", "samples": 6},
    "adaptive": {"kind": "adaptive", "types": 15, "cutoffs": [4, 9], "reduction": 2},
}
SHARED = {"softmax", "sampled", "adaptive"}


def settings_of(layer: str, **changes: Any) -> dict[str, Any]:
    targets = "none at all" if layer in SHARED else "gaps"
    given = {f"output_layer__{name}": value for name, value in LAYERS[layer].items()}
    return given | {"data__target_vectors": targets, "log__checkpoint_updates": 6, **changes}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_resumed_run_ends_the_same_and_its_model_reads_words(runs: TinyRuns, layer: str) -> None:
    settings = settings_of(layer)
    run = runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)
    checkpoint, weights = last_checkpoint(run), read_model_directory(run.path).output_layer.weights
    assert weights is not None
    assert weights.keys() == checkpoint["heads"].keys()
    assert {name.partition(".")[0] for name in weights} == (
        {"shared"} if layer in SHARED else {"forward_lm", "backward_lm"}
    )
    assert checkpoint["optimisers"].keys() == {*DIRECTIONS, *(["shared"] if layer in SHARED else [])}
    assert ElmoC.from_pretrained(run.path).embed(["w1", "unheard-of"]).isfinite().all()


@pytest.mark.parametrize("layer", LAYERS)
def test_each_learns(runs: TinyRuns, layer: str) -> None:
    sizes = {"encoder__cell_size": 32, "encoder__projection_size": 16, "train__directions": ["forward"]}
    seldom = {"evaluation__every_updates": 60, "log__checkpoint_updates": 60, "evaluation__candidates": 14}
    target = {} if layer in SHARED else {"data__target_vectors": "raw"}
    run = runs.run("run", **settings_of(layer, train__updates=120) | sizes | seldom | target)
    evaluations = read_metrics(run.path, "evaluation")
    last = evaluations[-1]
    assert last["accuracy_at_1"] > 1.5 * last["constant_accuracy_at_1"]
    for metric in ("perplexity", "vocabulary_perplexity"):
        assert metric not in last or last[metric] < 0.5 * last[f"constant_{metric}"]
    metric = "cosine" if layer in ("cosine", "l2", "von_mises_fisher") else "reciprocal_rank"
    best = max(evaluations, key=lambda line: line[metric])["update"]
    assert read_model_directory(run.path).training["updates"] == best


@needs_bf16
@pytest.mark.parametrize("layer", ["contrastive", "sampled", "fixed", "adaptive"])
def test_in_bf16_losses_are_nearly_the_same(runs: TinyRuns, layer: str) -> None:
    losses = []
    for precision in ("float32", "bf16"):
        settings = settings_of(layer, train__precision=precision, train__updates=3, log__every_updates=1)
        run = runs.run(f"run_{precision}", **settings)
        losses.append([line["loss"] for line in read_metrics(run.path, "train")])
    assert losses[1][0] == pytest.approx(losses[0][0], rel=0.005)
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_the_update_of_a_shared_layer_is_that_of_both_gradients_together(runs: TinyRuns) -> None:
    """One thread after the other, and side by side: the sum of two gradients does not know their order."""
    ends = [
        last_checkpoint(runs.run(f"threads{threads}", **settings_of("adaptive", train__threads=threads)))["heads"]
        for threads in (1, 2)
    ]
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("layer", "other"), [("adaptive", {"output_layer__types": 14}), ("cosine", {"output_layer__loss": "l2"})]
)
def test_going_on_takes_over_a_layer_of_the_same_kind_alone(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str], layer: str, other: dict[str, Any]
) -> None:
    run = runs.run("run", **settings_of(layer))
    init, settings = ("--init-from", str(run.path)), settings_of(layer, train__updates=1)
    same = runs.run("same", *init, **settings)
    weights = read_model_directory(run.path).output_layer.weights
    assert_same(dict(torch.load(same.checkpoints / f"{0:09d}.pt")["heads"]), dict(weights or {}))
    assert "anew" not in capsys.readouterr().out
    runs.run("other", *init, **settings | other)
    assert "anew" in capsys.readouterr().out
