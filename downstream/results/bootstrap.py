"""Bootstrap: how far would a score move on other items of the same kind?"""

from collections.abc import Callable, Sequence

import numpy as np

# Items that are drawn at a time: 16 MB for each of a few arrays.
BLOCK = 1 << 21


def resampled_scores(
    systems: Sequence[np.ndarray],
    *,
    metric: Callable[[np.ndarray], np.ndarray],
    resamples: int,
    seed: int = 1,
) -> np.ndarray:
    """Scores of every system on each of R resamples, the mean over the system's seeds.

    Args:
        systems: each float64 [seeds, N, K]: what the metric counts in N items; the
            number of seeds may differ.
        metric: float64 [..., K] of summed counts → [...].
        resamples: R.
        seed: of the draws.

    Returns:
        float64 [systems, R].
    """
    together = np.concatenate(systems)  # [all seeds, N, K]
    items = together.shape[1]
    columns = together.transpose(1, 0, 2).reshape(items, -1)  # [N, all seeds · K]
    ends = np.cumsum([len(counts) for counts in systems])
    generator = np.random.default_rng(seed)
    rows = max(1, BLOCK // items)
    blocks = []
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        drawn = generator.integers(items, size=(count, items))  # [r, N]
        # How often each item is drawn in each resample, as one histogram of all.
        places = drawn + np.arange(count)[:, None] * items
        times = np.bincount(places.ravel(), minlength=drawn.size)
        weights = times.reshape(drawn.shape).astype(np.float64)  # [r, N]
        # A product with the counts sums them over the items of each resample.
        sums = (weights @ columns).reshape(count, len(together), -1)  # [r, seeds, K]
        scores = metric(sums)  # [r, all seeds]
        of_systems = np.split(scores, ends[:-1], axis=1)
        blocks.append([part.mean(axis=1) for part in of_systems])
    return np.concatenate(blocks, axis=1)


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """The middle 95 % (percentile interval) of a score, or of a difference of two, from
    its resamples [R].
    """
    low, high = np.percentile(resampled, (2.5, 97.5))
    return float(low), float(high)
