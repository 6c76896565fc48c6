"""Continuous output: values and gradients are those of plain loops and of scipy's Bessel functions."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from pretrain.data.candidates import TargetSampler
from pretrain.data.windows import Position
from pretrain.output_layers.continuous import cosine_loss, l2_loss, max_margin_loss, von_mises_fisher_loss
from pretrain.output_layers.von_mises_fisher import log_partition
from scipy import special
from torch import Tensor

from pretrain.output_layers import Candidates, Loss

LENGTHS = [0.0, 1e-6, 0.01, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 500.0, 3000.0, 1e5]
SIZES = [1, 2, 3, 6, 25, 64, 100, 300, 768, 2000]


def slopes(function: Callable[[np.ndarray], float], point: np.ndarray) -> np.ndarray:
    """The gradient by central differences."""
    gradient = np.zeros_like(point)
    for index in np.ndindex(point.shape):
        steps = np.zeros_like(point)
        steps[index] = 1e-5
        gradient[index] = (function(point + steps) - function(point - steps)) / 2e-5
    return gradient


def exact_log_partition(length: float, size: int) -> float:
    """log of ₀F₁(m/2; κ²/4) by its power series, or by scipy's scaled Bessel function where that is more exact."""
    order = size / 2 - 1
    if length < max(10.0, order):
        terms, term = [], 0.0
        for k in range(2000):
            terms.append(term)
            if term < -60 + max(terms):
                break
            term += 2 * math.log(length / 2) - math.log(k + 1) - math.log(order + k + 1) if length else -math.inf
        return float(special.logsumexp(terms))
    return float(
        math.log(special.ive(order, length)) + length - order * math.log(length / 2) + special.gammaln(order + 1)
    )


@pytest.mark.parametrize("size", SIZES)
def test_log_partition_and_its_slope_are_those_of_bessel_functions(size: int) -> None:
    for length in LENGTHS:
        squared = torch.tensor(length**2, dtype=torch.float64, requires_grad=True)
        value = log_partition(squared, size)
        value.backward()
        assert value.item() == pytest.approx(exact_log_partition(length, size), rel=1e-8, abs=1e-9)
        order = size / 2 - 1
        if length < 1e-3:
            ratio = 1 / (2 * (order + 1))
        elif special.ive(order + 1, length) > 1e-300:
            ratio = special.ive(order + 1, length) / special.ive(order, length) / length
        else:
            continue
        assert squared.grad is not None
        assert squared.grad.item() == pytest.approx(ratio / 2, rel=1e-7)


def plain_cosine(prediction: np.ndarray, target: np.ndarray) -> float:
    return float(1 - prediction @ target / math.hypot(*prediction) / math.hypot(*target))


def plain_l2(prediction: np.ndarray, target: np.ndarray) -> float:
    return math.dist(prediction, target)


def plain_von_mises_fisher(length_weight: float, product_weight: float) -> Callable[[np.ndarray, np.ndarray], float]:
    def loss(prediction: np.ndarray, target: np.ndarray) -> float:
        length, product = math.hypot(*prediction), prediction @ target / math.hypot(*target)
        value = exact_log_partition(length, len(prediction))
        return float(value - product_weight * product + length_weight * length)

    return loss


@pytest.mark.parametrize("zero", [[], [1], [1, 4, 5], [*range(6)]], ids=lambda zero: f"{len(zero)} masked")
@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (cosine_loss, plain_cosine),
        (l2_loss, plain_l2),
        (von_mises_fisher_loss, plain_von_mises_fisher(0.0, 1.0)),
        (
            lambda predictions, targets: von_mises_fisher_loss(
                predictions, targets, length_weight=0.02, product_weight=0.1
            ),
            plain_von_mises_fisher(0.02, 0.1),
        ),
    ],
    ids=["cosine", "l2", "von Mises-Fisher", "regularised"],
)
def test_loss_and_gradient_are_those_of_a_plain_loop(
    loss: Callable[[Tensor, Tensor], Loss], plain: Callable[[np.ndarray, np.ndarray], float], zero: list[int]
) -> None:
    torch.manual_seed(0)
    predictions, targets = 4 * torch.randn(2, 3, 7), 3 * torch.randn(2, 3, 7)
    targets.view(6, 7)[zero] = 0
    predictions.requires_grad_()
    found = loss(predictions, targets)
    found.total.backward()
    rows, true = predictions.detach().double().view(6, 7).numpy(), targets.double().view(6, 7).numpy()

    def total(rows: np.ndarray) -> float:
        return sum(plain(row, target) for row, target in zip(rows, true, strict=True) if target.any())

    assert found.total.item() == pytest.approx(total(rows), rel=1e-6)
    assert (int(found.counted), int(found.masked)) == (6 - len(zero), len(zero))
    assert predictions.grad is not None
    np.testing.assert_allclose(predictions.grad.view(6, 7).numpy(), slopes(total, rows), atol=1e-6, rtol=1e-6)
    assert not predictions.grad.view(6, 7)[zero].any()


def plain_max_margin(
    predictions: np.ndarray, targets: list[int], rows: np.ndarray, candidates: list[int], margin: float
) -> list[float]:
    """The loss of each prediction whose target has a vector."""

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / math.hypot(*a) / math.hypot(*b))

    losses = []
    for prediction, target in zip(predictions, targets, strict=True):
        if not rows[target].any():
            continue
        others = [row for row in rows[[each for each in candidates if each != target]] if row.any()]
        other = max(others, key=lambda row: cosine(prediction, row) - cosine(rows[target], row), default=None)
        own = cosine(prediction, rows[target])
        losses.append(0.0 if other is None else max(0.0, margin + cosine(prediction, other) - own))
    return losses


@pytest.mark.parametrize("zero", [[], [2, 5, 9], [*range(29)]], ids=["all have vectors", "some do not", "one has"])
@pytest.mark.parametrize("margin", [0.1, 0.5, 2.0])
def test_max_margin_is_that_of_plain_loops(zero: list[int], margin: float) -> None:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((30, 6))
    rows[zero] = 0
    targets = generator.integers(15, 30, 12).astype(np.uint32)
    targets[0] = 29
    sampler = TargetSampler(np.arange(60, 30, -1), targets=12)
    ids = sampler.candidates(targets, Position(), "forward").ids
    candidates = Candidates(
        torch.tensor(rows[ids], dtype=torch.float32),
        torch.from_numpy(sampler.log_frequency[ids]),
        torch.from_numpy(sampler.log_chance[ids]),
        torch.from_numpy(np.searchsorted(ids, targets)).view(3, 4),
    )
    torch.manual_seed(0)
    predictions = torch.randn(3, 4, 6) + torch.tensor(rows[targets], dtype=torch.float32).view(3, 4, 6)
    predictions.requires_grad_()
    loss = max_margin_loss(predictions, candidates, margin=margin)
    loss.total.backward()

    def plain(predictions: np.ndarray) -> list[float]:
        return plain_max_margin(predictions, [int(each) for each in targets], rows, [int(each) for each in ids], margin)

    points = predictions.detach().double().view(12, 6).numpy()
    expected = plain(points)
    assert loss.total.item() == pytest.approx(sum(expected), abs=1e-5)
    assert (int(loss.counted), int(loss.masked)) == (len(expected), 12 - len(expected))
    assert predictions.grad is not None
    np.testing.assert_allclose(
        predictions.grad.view(12, 6).numpy(), slopes(lambda each: sum(plain(each)), points), atol=1e-4
    )
    assert margin < 2 or len(zero) == 29 or predictions.grad.any()
