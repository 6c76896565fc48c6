"""Picture: the uses of a word in two dimensions, where uses of one meaning lie
together.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmoc.errors import InputError
from elmoc.looking.figures import save_figure
from elmoc.looking.uses import Use, use_vectors
from elmoc.model import ElmoC

# words on each side of a use that its label shows
LABEL_WORDS = 2
# width and height that a label takes, as shares of the picture
_LABEL = np.array([0.2, 0.03])


def draw_uses(
    elmo: ElmoC, uses: Sequence[Use], output: Path | str, *, title: str, layer: str
) -> None:
    """Draw the uses in their first two principal components, with the words around as
    many as there is room for.

    `uses` are at least three, whose vectors differ; `layer` is as in `use_vectors`;
    `output` is replaced when it is there.
    """
    from matplotlib.figure import Figure  # of an extra

    figure = Figure(figsize=(11, 8.5), layout="constrained")
    points = principal_components(use_vectors(elmo, uses, layer), 2)
    if len(uses) < 3 or not np.ptp(points[:, 0]) > 1e-6:
        raise InputError(
            f"a picture needs 3 uses with different vectors, not {len(uses)}: give more text (no --layer 0)"
        )
    axes = figure.add_subplot()
    axes.scatter(points[:, 0], points[:, 1], s=22, alpha=0.65, linewidths=0)
    axes.set(xticks=[], yticks=[])
    axes.margins(0.08)
    axes.set_title(title, loc="left", fontsize=13, parse_math=False)
    places = (points - points.min(axis=0)) / np.ptp(points, axis=0).clip(1e-12)
    taken = list[np.ndarray]()
    for index in np.random.default_rng(0).permutation(len(points)):
        if all((abs(places[index] - other) > _LABEL).any() for other in taken):
            taken.append(places[index])
            before, after = uses[index].around(LABEL_WORDS)
            context = " ".join(
                [*before, uses[index].tokens[uses[index].position], *after]
            )
            axes.annotate(
                "".join(each if each.isprintable() else " " for each in context),
                points[index],
                xytext=(4, 3),
                textcoords="offset points",
                fontsize=7.5,
                parse_math=False,
            ).set_in_layout(False)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing"
        )  # such characters are drawn as boxes
        save_figure(figure, output)


def principal_components(vectors: np.ndarray, count: int) -> np.ndarray:
    """float64 [n, count]: the vectors, each of length 1, in their first principal
    components (or all, if fewer).
    """
    directions = vectors.astype(np.float64)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-30)
    left, scale, _ = np.linalg.svd(
        directions - directions.mean(axis=0), full_matrices=False
    )
    components: np.ndarray = (left * scale)[:, :count]
    return components
