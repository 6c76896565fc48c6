"""Picture: the uses of a word in two dimensions, in clusters, with the words that tell these apart."""

import warnings
from collections import Counter
from collections.abc import Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError
from elmoc.looking.figures import save_figure
from elmoc.looking.uses import Use, use_vectors
from elmoc.model import ElmoC

# Okabe and Ito's, which the colour-blind can tell apart: one a cluster
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# principal components in which clusters are looked for; two of them are shown
COMPONENTS = 5
# words on each side of a use among which the words of a cluster are looked for, and words that its label shows
NEAR_WORDS, LABEL_WORDS = 4, 2
# width and height that a label takes, as shares of the picture
_LABEL = np.array([0.2, 0.03])
# uses whose silhouettes are computed, to choose the number of clusters
_MOST_COMPARED = 2000
# occurrences that a word is taken to have had everywhere, so that rare words tell little
_PRIOR = 2.0


def draw_uses(elmo: ElmoC, uses: Sequence[Use], output: Path | str, *, title: str, layer: str) -> list[list[str]]:
    """Draw the uses in their first two principal components; returns the telling words of each cluster.

    `uses` are at least three, whose vectors differ; `layer` is as in `use_vectors`; `output` is replaced when it is
    there.
    """
    from matplotlib.figure import Figure  # of an extra

    figure = Figure(figsize=(11, 8.5), layout="constrained")
    points = principal_components(use_vectors(elmo, uses, layer), COMPONENTS)
    if len(uses) < 3 or not np.ptp(points[:, 0]) > 1e-6:
        raise InputError(
            f"a picture needs 3 uses with different vectors, not {len(uses)}: give more text (no --layer 0)"
        )
    labels = cluster(points)
    words = telling_words(uses, labels, 6)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # such characters are drawn as boxes
        _draw(figure.add_subplot(), points[:, :2], labels, uses, words)
        figure.axes[0].set_title(title, loc="left", fontsize=13, parse_math=False)
        save_figure(figure, output)
    return words


def principal_components(vectors: np.ndarray, count: int) -> np.ndarray:
    """float64 [n, count]: the vectors, each of length 1, in their first principal components (or all, if fewer)."""
    directions = vectors.astype(np.float64)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-30)
    left, scale, _ = np.linalg.svd(directions - directions.mean(axis=0), full_matrices=False)
    components: np.ndarray = (left * scale)[:, :count]
    return components


def cluster(points: np.ndarray) -> np.ndarray:
    """int [n]: the cluster of each point, the largest first: by k-means with the best silhouette."""
    from sklearn.cluster import KMeans  # of an extra
    from sklearn.metrics import silhouette_score

    best, labels = -1.0, np.zeros(len(points), dtype=np.int64)
    for number in range(2, min(len(COLOURS), len(points) - 1, len(np.unique(points, axis=0))) + 1):
        found = KMeans(number, n_init=10, random_state=0).fit_predict(points)
        quality = silhouette_score(points, found, sample_size=min(len(points), _MOST_COMPARED), random_state=0)
        if quality > best:
            best, labels = quality, found
    rank = {number: place for place, (number, _) in enumerate(Counter(labels.tolist()).most_common())}
    return np.array([rank[label] for label in labels.tolist()])


def telling_words(uses: Sequence[Use], labels: np.ndarray, count: int) -> list[list[str]]:
    """For each cluster, at most `count` words that are more frequent near its uses than near the others and far off."""
    near: list[Counter[str]] = [Counter() for _ in range(int(labels.max()) + 1)]
    far = Counter[str]()
    for use, label in zip(uses, labels, strict=True):
        around = [word for words in use.around(NEAR_WORDS) for word in words]
        near[label].update(map(str.lower, around))
        far.update(map(str.lower, use.tokens))
        far.subtract(map(str.lower, around))
    together, telling = sum(near, Counter[str]()), []
    for here in near:
        gains = {}
        for word, number in here.items():
            shares = ((other[word], max(1, other.total())) for other in (together - here, far))
            ratios = [(number + _PRIOR) / (here.total() * times / total + _PRIOR) for times, total in shares]
            gains[word] = sqrt(number) * log(min(ratios)) if any(map(str.isalpha, word)) else 0.0
        best = sorted(here, key=lambda word: (-gains[word], word))
        telling.append([word for word in best if gains[word] > 0][:count])
    return telling


def _draw(axes: Any, points: np.ndarray, labels: np.ndarray, uses: Sequence[Use], words: list[list[str]]) -> None:
    for number, telling in enumerate(words):
        mine = points[labels == number]
        name = f" {', '.join(telling) or '–'}  ({len(mine):,})".replace("$", r"\$")  # one with _ first is in no legend
        axes.scatter(mine[:, 0], mine[:, 1], s=22, alpha=0.65, linewidths=0, color=COLOURS[number], label=name)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.08)
    heading, below = "words near the uses of each cluster", (0.5, -0.01)
    axes.legend(title=heading, loc="upper center", bbox_to_anchor=below, ncols=2, frameon=False, alignment="left")
    places, taken = (points - points.min(axis=0)) / np.ptp(points, axis=0).clip(1e-12), list[np.ndarray]()
    for index in np.random.default_rng(0).permutation(len(points)):
        if all((abs(places[index] - other) > _LABEL).any() for other in taken):
            taken.append(places[index])
            before, after = uses[index].around(LABEL_WORDS)
            context = " ".join([*before, uses[index].tokens[uses[index].position], *after])
            axes.annotate(
                "".join(each if each.isprintable() else " " for each in context),
                points[index],
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=7.5,
                color=COLOURS[int(labels[index])],
                parse_math=False,
            ).set_in_layout(False)
