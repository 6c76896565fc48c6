"""Clusters of uses: k-means with the best silhouette, and the words that tell clusters apart."""

import numpy as np
import pytest

from elmoc.looking.picture import cluster, principal_components, telling_words
from elmoc.looking.uses import Use


def blobs(sizes: tuple[int, ...], spread: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Points around the corners of a simplex, in random order, and their blobs."""
    generator = np.random.default_rng(3)
    labels = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = np.eye(len(sizes), 5)
    return centres[labels] + spread * generator.standard_normal((len(labels), 5)), labels


def test_blobs_are_found_the_largest_first() -> None:
    points, blob = blobs((20, 50, 30))
    labels = cluster(points)
    assert [set(blob[labels == number]) for number in range(3)] == [{1}, {2}, {0}]
    assert np.bincount(labels).tolist() == [50, 30, 20]


def test_few_or_equal_points() -> None:
    assert cluster(np.zeros((5, 2))).tolist() == [0] * 5
    assert len(set(cluster(np.array([[0.0], [0.1], [5.0]])).tolist())) == 2


def test_principal_components_keep_distances() -> None:
    vectors = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    points = principal_components(vectors, 10)
    for first in range(7):
        for second in range(7):
            expected = np.linalg.norm(directions[first] - directions[second])
            assert np.linalg.norm(points[first] - points[second]) == pytest.approx(expected, abs=1e-5)
    assert (np.diff(points.var(axis=0)) <= 1e-12).all(), "the widest first"
    assert points.shape == (7, 4)


def test_words_of_one_cluster_tell_and_words_of_all_do_not() -> None:
    far = ["the"] * 8 + ["and"] * 8
    uses = [
        Use(tuple(f"the {kind} bank of the {place} .".split() + far), 2)
        for kind, place in (("left", "river"), ("central", "state")) * 6
    ]
    labels = np.array([0, 1] * 6)
    words = telling_words(uses, labels, 3)
    assert [set(each) for each in words] == [{"left", "river"}, {"central", "state"}]
