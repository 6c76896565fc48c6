"""Bootstrap: how far would a score move on other items of the same kind?"""

from collections.abc import Callable, Sequence

import numpy as np

# items that are drawn at a time: 16 MB for each of a few arrays
BLOCK = 1 << 21


def resampled_scores(
    systems: Sequence[np.ndarray],
    *,
    metric: Callable[[np.ndarray], np.ndarray],
    resamples: int,
    seed: int = 1,
) -> np.ndarray:
    """Scores of every system on each of R resamples, float64 [systems, R], in the mean
    over the system's seeds.

    Args:
        systems: each float64 [seeds, N, K]: what the metric counts in N items; the
            number of seeds may differ.
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
        drawn = generator.integers(
            items, size=(min(rows, resamples - start), items)
        )  # [r, N]
        places = drawn + np.arange(len(drawn))[:, None] * items
        weights = np.bincount(places.ravel(), minlength=drawn.size).reshape(
            drawn.shape
        )  # how often each is drawn
        sums = (weights.astype(np.float64) @ columns).reshape(
            len(drawn), len(together), -1
        )  # [r, all seeds, K]
        scores = metric(sums)  # [r, all seeds]
        blocks.append(
            [part.mean(axis=1) for part in np.split(scores, ends[:-1], axis=1)]
        )
    return np.concatenate(blocks, axis=1)


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """The middle 95 % (percentile interval) of a score, or of a difference of two, from
    its resamples [R].
    """
    low, high = np.percentile(resampled, (2.5, 97.5))
    return float(low), float(high)
