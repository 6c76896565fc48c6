"""Contrastive output: values and gradients of a plain twin, and what its scores come to estimate."""

from typing import Any

import numpy as np
import pytest
import torch
from pretrain.data.candidates import TargetSampler
from pretrain.data.windows import Position
from pretrain.output_layers.contrastive import ContrastiveOutput, ContrastiveSettings
from tests import references

from pretrain.output_layers import Candidates, Targets

TYPES, WIDTH, PROJECTION = 30, 6, 5


def example(zero: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and rows of a lexicon, and targets [3, 4]."""
    generator = np.random.default_rng(0)
    counts = np.sort(generator.integers(1, 100, TYPES))[::-1].copy()
    rows = generator.standard_normal((TYPES, WIDTH))
    rows[zero] = 0
    targets = generator.choice(TYPES, (3, 4), p=counts / counts.sum()).astype(np.uint32)
    return counts, rows, targets


def candidates_of(
    sampler: TargetSampler, rows: np.ndarray, targets: np.ndarray, all_ids: np.ndarray, *, corrected: bool = True
) -> Candidates:
    return Candidates(
        torch.tensor(rows[all_ids], dtype=torch.float32),
        torch.from_numpy(sampler.log_frequency[all_ids]),
        torch.from_numpy(sampler.log_chance[all_ids] * corrected),
        torch.from_numpy(np.searchsorted(all_ids, targets)),
    )


@pytest.mark.parametrize("zero", [[], [2, 5, 9]], ids=["all have vectors", "some do not"])
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.2}, {"cosine_weight": 0.7}], ids=lambda options: "-".join(options) or "plain"
)
def test_loss_and_gradients_are_those_of_plain_loops(options: dict[str, Any], zero: list[int]) -> None:
    settings = ContrastiveSettings(**options)
    counts, rows, targets = example(zero)
    sampler = TargetSampler(counts, targets=targets.size)
    ids = sampler.candidates(targets, Position(), "forward").ids
    torch.manual_seed(0)
    layer = ContrastiveOutput(PROJECTION, WIDTH, settings)
    states = torch.randn(3, 4, PROJECTION, requires_grad=True)
    loss = layer(
        states, Targets(torch.from_numpy(targets.astype(np.int64)), None, candidates_of(sampler, rows, targets, ids))
    )
    loss.total.backward()

    def plain(
        states: np.ndarray, weight: np.ndarray, bias: np.ndarray, temperature: float, frequency_weight: float
    ) -> list[float]:
        return references.contrastive_losses(
            states @ weight.T + bias,
            [int(each) for each in targets.ravel()],
            rows,
            counts.tolist(),
            temperature=temperature,
            frequency_weight=frequency_weight,
            cosine_weight=settings.cosine_weight,
        )

    values = {
        "states": states.detach().view(12, PROJECTION).double().numpy(),
        "weight": layer.weight.detach().double().numpy(),
        "bias": layer.bias.detach().double().numpy(),
        "temperature": settings.temperature,
        "frequency_weight": 1.0,
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

    assert states.grad is not None
    for index in np.ndindex(12, PROJECTION):
        found = states.grad.view(12, PROJECTION)[index].item()
        assert found == pytest.approx(slope("states", index), rel=1e-3, abs=1e-3)
    for index in np.ndindex(layer.weight.shape):
        assert layer.weight.grad[index].item() == pytest.approx(slope("weight", index), rel=1e-3, abs=1e-3)
    assert layer.bias.grad[2].item() == pytest.approx(slope("bias", (2,)), rel=1e-3, abs=1e-3)
    assert layer.frequency_weight.grad.item() == pytest.approx(slope("frequency_weight", ()), rel=1e-3)
    (per_logit,) = torch.autograd.grad(layer.temperature, layer.temperature_logit)
    assert layer.temperature_logit.grad.item() == pytest.approx(
        slope("temperature", ()) * per_logit.item(), rel=1e-3, abs=1e-3
    )


def test_chances_are_those_of_many_windows() -> None:
    counts = np.array([500, 300, 120, 60, 15, 5, 0])
    sampler = TargetSampler(counts, targets=9)
    generator = np.random.default_rng(0)
    seen = np.zeros(7)
    for number in range(4000):
        others = generator.choice(7, 8, p=counts / counts.sum()).astype(np.uint32)
        seen[sampler.candidates(others, Position(1, 2, number), "backward").ids] += 1 / 4000
    np.testing.assert_allclose(seen[:6], np.exp(sampler.log_chance)[:6], atol=0.03)
    assert seen[6] == 0, "a type that the training text lacks is never drawn"
    assert np.isfinite(sampler.log_chance).all()
