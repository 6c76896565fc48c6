"""Paired bootstrap over test items: how sure a score, or a gain, is to be more than the luck of these items.

The method is that of Koehn (2004) and Berg-Kirkpatrick, Burkett and Klein (2012): draw as many items as the test set
has, with replacement, score them, and repeat. Systems that are compared, and all their seeds, are scored on the same
draws. The spread is that of other test sets of the same kind, for the models that were trained; the luck of the
training shows in the standard deviation over seeds instead.
"""

from collections.abc import Callable, Sequence

import numpy as np

# items that are drawn at a time: 16 MB an array, of which there are a few
BLOCK = 1 << 21


def resampled_scores(
    systems: Sequence[np.ndarray], *, metric: Callable[[np.ndarray], np.ndarray], resamples: int, seed: int = 1
) -> np.ndarray:
    """Scores of every system on each of R resamples, float64 [systems, R], in the mean over the system's seeds.

    Args:
        systems: each float64 [seeds, N, K]: what the metric counts in N items; the number of seeds may differ.
        metric: float64 [..., K] of summed counts → [...].
        resamples: R.
        seed: of the draws.
    """
    together = np.concatenate(systems)  # [all seeds, N, K]
    items = together.shape[1]
    columns = together.transpose(1, 0, 2).reshape(items, -1)  # [N, all seeds · K]
    ends = np.cumsum([len(counts) for counts in systems])
    generator = np.random.default_rng(seed)
    rows = max(1, BLOCK // items)
    blocks = []
    for start in range(0, resamples, rows):
        drawn = generator.integers(items, size=(min(rows, resamples - start), items))  # [r, N]
        places = drawn + np.arange(len(drawn))[:, None] * items
        weights = np.bincount(places.ravel(), minlength=drawn.size).reshape(drawn.shape)  # how often each is drawn
        sums = (weights.astype(np.float64) @ columns).reshape(len(drawn), len(together), -1)  # [r, all seeds, K]
        scores = metric(sums)  # [r, all seeds]
        blocks.append([part.mean(axis=1) for part in np.split(scores, ends[:-1], axis=1)])
    return np.concatenate(blocks, axis=1)


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """The middle 95 % (percentile interval) of a score, or of a difference of two, from its resamples [R]."""
    low, high = np.percentile(resampled, (2.5, 97.5))
    return float(low), float(high)


def p_value(gains: np.ndarray) -> float:
    """The one-sided p-value of "there is no gain" from resampled gains [R]: the share of resamples without a gain.

    (1 + the number of gains ≤ 0) / (R + 1): the test set itself counts as one more resample, so that p is never 0. It
    goes with the interval: this lies above 0 where p is under about 0.025, and below 0 where p is above about 0.975.
    """
    return float((1 + np.count_nonzero(gains <= 0)) / (len(gains) + 1))
