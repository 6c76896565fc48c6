"""Contrastive output: values and gradients of a plain twin, and what its scores come to estimate."""

from typing import Any

import numpy as np
import pytest
import torch

from elmoc.encoders import DIRECTIONS
from pretrain.data.candidates import CandidateSampler
from pretrain.data.windows import Position
from pretrain.output_layers import Candidates, Targets
from pretrain.output_layers.contrastive import ContrastiveOutput, ContrastiveSettings
from pretrain.run.directory import read_metrics
from tests import references
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint

TYPES, WIDTH, PROJECTION = 30, 6, 5
CONTRASTIVE: dict[str, Any] = {"output_layer__kind": "contrastive"}


def example(zero: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and rows of a lexicon, and targets [3, 4]."""
    generator = np.random.default_rng(0)
    counts = np.sort(generator.integers(1, 100, TYPES))[::-1].copy()
    rows = generator.standard_normal((TYPES, WIDTH))
    rows[zero] = 0
    targets = generator.choice(TYPES, (3, 4), p=counts / counts.sum()).astype(np.uint32)
    return counts, rows, targets


def candidates_of(sampler: CandidateSampler, rows: np.ndarray, targets: np.ndarray, all_ids: np.ndarray) -> Candidates:
    return Candidates(
        torch.tensor(rows[all_ids], dtype=torch.float32),
        torch.from_numpy(sampler.log_frequency[all_ids]),
        torch.from_numpy(sampler.log_chance[all_ids]),
        torch.from_numpy(np.searchsorted(all_ids, targets)),
    )


@pytest.mark.parametrize("zero", [[], [2, 5, 9]], ids=["all have vectors", "some do not"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.2, "frequency": "none"},
        {"correction": False},
        {"extra_candidates": 9, "extra_power": 0.5},
        {"cosine_weight": 0.7},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_loss_and_gradients_are_those_of_plain_loops(options: dict[str, Any], zero: list[int]) -> None:
    settings = ContrastiveSettings(**options)
    counts, rows, targets = example(zero)
    sampler = CandidateSampler(counts, targets=targets.size, settings=settings.candidates, seed=1)
    ids = sampler.candidates(targets, Position(), "forward")
    torch.manual_seed(0)
    layer = ContrastiveOutput(PROJECTION, WIDTH, settings)
    states = torch.randn(3, 4, PROJECTION)
    loss = layer(
        states, Targets(torch.from_numpy(targets.astype(np.int64)), None, candidates_of(sampler, rows, targets, ids))
    )
    loss.total.backward()

    # every distinct candidate as if drawn: those that are targets, too, change nothing but the chance, which is given
    drawn = np.setdiff1d(ids, targets)
    drawn = [*drawn, *[int(targets[0, 0])] * (settings.extra_candidates - len(drawn))]

    def plain(weight: np.ndarray, bias: np.ndarray, temperature: float, frequency_weight: float) -> list[float]:
        return references.contrastive_losses(
            states.view(12, PROJECTION).double().numpy() @ weight.T + bias,
            [int(each) for each in targets.ravel()],
            rows,
            counts.tolist(),
            drawn=[int(each) for each in drawn],
            power=settings.extra_power,
            temperature=temperature,
            frequency_weight=frequency_weight,
            correction=settings.correction,
            cosine_weight=settings.cosine_weight,
        )

    values = {
        "weight": layer.weight.detach().double().numpy(),
        "bias": layer.bias.detach().double().numpy(),
        "temperature": settings.temperature,
        "frequency_weight": 1.0 if settings.frequency == "learned" else 0.0,
    }
    expected = plain(**values)
    assert loss.total.item() == pytest.approx(sum(expected), rel=1e-5)
    assert (int(loss.counted), int(loss.masked)) == (len(expected), 12 - len(expected))
    assert (len(expected) < 12) == bool(zero)

    def slope(name: str, index: tuple[int, ...]) -> float:
        sums = []
        for sign in (1, -1):
            moved = np.array(values[name], dtype=np.float64)
            moved[index] += sign * 1e-5
            sums.append(sum(plain(**{**values, name: moved})))
        return (sums[0] - sums[1]) / 2e-5

    for index in np.ndindex(layer.weight.shape):
        assert layer.weight.grad[index].item() == pytest.approx(slope("weight", index), rel=1e-3, abs=1e-3)
    assert layer.bias.grad[2].item() == pytest.approx(slope("bias", (2,)), rel=1e-3, abs=1e-3)
    if settings.frequency == "learned":
        assert layer.frequency_weight.grad.item() == pytest.approx(slope("frequency_weight", ()), rel=1e-3)
    (per_logit,) = torch.autograd.grad(layer.temperature, layer.temperature_logit)
    assert layer.temperature_logit.grad.item() == pytest.approx(
        slope("temperature", ()) * per_logit.item(), rel=1e-3, abs=1e-3
    )


def test_it_learns_and_the_seed_decides_everything(runs: TinyRuns) -> None:
    settings = CONTRASTIVE | {"train__updates": 150, "encoder__cell_size": 32, "encoder__projection_size": 16}
    run = runs.run("run", output_layer__extra_candidates=5, **settings)
    losses = [line["loss"] for line in read_metrics(run.path, "train")]
    assert losses[-1] < 0.6 * losses[0]
    *_, last = read_metrics(run.path, "evaluation")
    for direction in DIRECTIONS:
        assert last[f"{direction}_accuracy_at_1"] > 2 * last[f"{direction}_constant_accuracy_at_1"]
        assert last[f"{direction}_perplexity"] < 0.5 * last[f"{direction}_constant_perplexity"]
    again = runs.run("again", output_layer__extra_candidates=5, data__tables_on_device=True, **settings)
    for kind in ("encoder", "heads", "optimisers"):
        assert_same(last_checkpoint(run)[kind], last_checkpoint(again)[kind], kind)
