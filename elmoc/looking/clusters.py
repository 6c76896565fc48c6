"""Clusters: groups of uses by their vectors, and the words around them that tell the groups apart."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log, sqrt

import numpy as np

from elmoc.looking.uses import Use

MOST_CLUSTERS = 6
# Words on each side of a use, among which the words of a cluster are looked for.
NEAR_WORDS = 4
_STARTS, _CONVERGED = 10, 1e-7
# Points whose distances from each other are computed, to choose the number of clusters.
_MOST_COMPARED = 2000
# Occurrences that a word is taken to have had everywhere, so that rare words tell little.
_PRIOR = 2.0


def principal_components(vectors: np.ndarray, count: int) -> np.ndarray:
    """float64 [n, count]: the vectors, each of length 1, in their first principal components (or all, if fewer)."""
    directions = vectors.astype(np.float64)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-30)
    left, scale, _ = np.linalg.svd(directions - directions.mean(axis=0), full_matrices=False)
    components: np.ndarray = (left * scale)[:, :count]
    return components


def cluster(points: np.ndarray) -> np.ndarray:
    """int [n]: the cluster of each point, the largest first: by k-means with the best silhouette."""
    from scipy.cluster.vq import kmeans, vq  # of an extra
    from sklearn.metrics import silhouette_score

    best, labels = -1.0, np.zeros(len(points), dtype=np.int64)
    compared = np.linspace(0, len(points) - 1, min(len(points), _MOST_COMPARED)).astype(np.int64)
    for number in range(2, min(MOST_CLUSTERS, len(points) - 1) + 1):
        # the best of several starts, with fixed random numbers; fewer clusters where points are equal
        centres, _ = kmeans(points, number, iter=_STARTS, thresh=_CONVERGED, seed=np.random.default_rng(0))
        found = vq(points, centres)[0]
        if len(set(found[compared])) > 1 and (quality := silhouette_score(points[compared], found[compared])) > best:
            best, labels = quality, found
    numbers, sizes = np.unique(labels, return_counts=True)
    rank = {number: place for place, number in enumerate(numbers[np.argsort(-sizes, kind="stable")])}
    return np.array([rank[label] for label in labels])


def telling_words(uses: Sequence[Use], labels: np.ndarray, count: int) -> list[list[str]]:
    """For each cluster, at most `count` words that are more frequent near its uses than near the others and far off."""
    clusters = int(labels.max()) + 1
    near: list[Counter[str]] = [Counter() for _ in range(clusters)]
    far = Counter[str]()
    for use, label in zip(uses, labels, strict=True):
        around = use.around(NEAR_WORDS)
        near[label].update(_words(around))
        far.update(_words(use.tokens))
        far.subtract(_words(around))
    together = sum(near, Counter[str]())
    return [_most_telling(counts, together - counts, far, count) for counts in near]


def _words(tokens: Iterable[str]) -> list[str]:
    return [token.lower() for token in tokens if any(map(str.isalpha, token))]


def _most_telling(here: Counter[str], others: Counter[str], far: Counter[str], count: int) -> list[str]:
    """The words that are most clearly more frequent here than in either of the other counts."""
    size, gains = max(1, here.total()), {}
    for word, number in here.items():
        expected = [size * other[word] / max(1, other.total()) for other in (others, far)]
        gains[word] = sqrt(number) * log(min((number + _PRIOR) / (each + _PRIOR) for each in expected))
    best = sorted(here, key=lambda word: (-gains[word], word))
    return [word for word in best if gains[word] > 0][:count]
