"""The bootstrap against a plain one, and its intervals where they are known."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from downstream.results.bootstrap import interval, resampled_scores

from downstream.results import bootstrap


def accuracy(counts: np.ndarray) -> np.ndarray:
    return 100 * counts[..., 0] / counts[..., 1]


def f1(counts: np.ndarray) -> np.ndarray:
    return 200 * counts[..., 0] / (counts[..., 1] + counts[..., 2])


def answers(*right: Sequence[int]) -> np.ndarray:
    """float64 [seeds, N, 2]: 1 for each right answer, and 1 for each."""
    return np.stack([np.array(right), np.ones_like(right)], axis=2).astype(np.float64)


def resampled_by_hand(
    systems: Sequence[np.ndarray], metric: Callable[[np.ndarray], np.ndarray], resamples: int, seed: int
) -> list[list[float]]:
    """Draw lists of items, add up the counts of each list, and score it."""
    generator = np.random.default_rng(seed)
    items = systems[0].shape[1]
    scores: list[list[float]] = [[] for _ in systems]
    for _ in range(resamples):
        drawn = generator.integers(items, size=items).tolist()
        for counts, of_system in zip(systems, scores, strict=True):
            of_seeds = [float(metric(sum(one[item] for item in drawn))) for one in counts]
            of_system.append(sum(of_seeds) / len(of_seeds))
    return scores


@pytest.mark.parametrize("block", [1, 40, 1000, 1 << 20])
def test_equals_a_plain_bootstrap_whatever_the_block(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    generator = np.random.default_rng(5)
    systems = [generator.integers(1, 9, size=(seeds, 13, 3)) + generator.random(3) for seeds in (3, 1, 2)]
    monkeypatch.setattr(bootstrap, "BLOCK", block)
    fast = resampled_scores(systems, metric=f1, resamples=77, seed=3)
    assert fast.shape == (3, 77)
    np.testing.assert_allclose(fast, resampled_by_hand(systems, f1, 77, 3), rtol=1e-12)


def test_two_items_worked_out_by_hand() -> None:
    # the second item is drawn 0, 1 or 2 times with probabilities 1/4, 1/2, 1/4; only there the systems differ
    better, worse = resampled_scores([answers([1, 1]), answers([1, 0])], metric=accuracy, resamples=10_000)
    gains = better - worse
    assert set(better) == {100}
    assert set(gains) == {0, 50, 100}
    assert np.mean(gains == 50) == pytest.approx(0.5, abs=0.02)
    assert np.mean(gains == 0) == pytest.approx(0.25, abs=0.02)
    assert interval(gains) == (0, 100)
