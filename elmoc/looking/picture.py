"""Picture: the uses of a word in two dimensions, where uses of one meaning lie
together.
"""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.looking.figures import save_figure
from elmoc.looking.uses import Use, use_vectors
from elmoc.model import ElmoC

# Words on each side of a use that its label shows.
LABEL_WORDS = 2
# A longer label would take more than a fifth of the picture.
LABEL_CHARACTERS = 40
# Width and height that a label takes, as shares of the picture.
_LABEL = np.array([0.2, 0.03])


def draw_uses(
    elmo: ElmoC, uses: Sequence[Use], output: Path | str, *, title: str, layer: str
) -> None:
    """Draw the uses in their first two principal components, with the words around
    those for which there is room.

    Args:
        elmo: the encoder.
        uses: at least three, whose vectors differ.
        output: the file; it is replaced when it is there.
        title: of the picture.
        layer: as in `use_vectors`.

    Raises:
        InputError: there are too few uses, or their vectors are equal.
    """
    from matplotlib.figure import Figure  # of an extra

    [points] = use_points(elmo, uses, [layer], 2)
    figure = Figure(figsize=(11, 8.5), layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(points[:, 0], points[:, 1], s=22, alpha=0.65, linewidths=0)
    axes.set(xticks=[], yticks=[])
    # Half of a label beside the first and the last point.
    axes.margins(x=_LABEL[0] / 2)
    # Text of users may have `$`, which is no formula.
    axes.set_title(f"{title}, layer {layer}", loc="left", fontsize=13, parse_math=False)
    for index in _labelled(points):
        axes.annotate(
            _label(uses[index]),
            points[index],
            xytext=(0, 4),
            textcoords="offset points",
            horizontalalignment="center",
            fontsize=7.5,
            parse_math=False,
        )
    with warnings.catch_warnings():
        # Characters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        save_figure(figure, output)


def _labelled(points: np.ndarray) -> list[int]:
    """Which points get a label, so that no two overlap."""
    places = points - points.min(axis=0)
    # A second component of zeros is no reason to divide by zero.
    places /= np.ptp(points, axis=0).clip(1e-12)
    chosen: list[int] = []
    # In a random order, so that labels are spread; the same each time.
    for index in np.random.default_rng(0).permutation(len(points)):
        # [labels, 2]
        if (abs(places[chosen] - places[index]) > _LABEL).any(axis=1).all():
            chosen.append(index)
    return chosen


def _label(use: Use) -> str:
    before, after = use.around(LABEL_WORDS)
    text = " ".join([*before, use.tokens[use.position], *after])
    printable = "".join(each if each.isprintable() else " " for each in text)
    return shortened(printable, LABEL_CHARACTERS)


def use_points(
    elmo: ElmoC, uses: Sequence[Use], layers: Iterable[str], count: int
) -> list[np.ndarray]:
    """float64 [n, count]: the uses in their first principal components, for each choice
    of layers.

    Args:
        elmo, uses, layers: see `use_vectors`.
        count: components, or all, if there are fewer.

    Raises:
        InputError: there are too few uses, or their vectors are equal in all layers.
    """
    # Where vectors differ in their last bits alone, uses are one point.
    points = [
        principal_components(each.numpy(), count).round(6)
        for each in use_vectors(elmo, uses, layers)
    ]
    if len(uses) < 3 or not any(np.ptp(each[:, 0]) for each in points):
        raise InputError(
            f"a picture needs 3 uses with different vectors, not {len(uses)}: give "
            "more text (no --layer 0)"
        )
    return points


def principal_components(vectors: np.ndarray, count: int) -> np.ndarray:
    """float64 [n, count]: the vectors, each of length 1, in their first principal
    components (or all, if fewer).
    """
    directions = vectors.astype(np.float64)
    # A word without a vector has layer 0 of zeros.
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-30)
    centred = directions - directions.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray((left * scale)[:, :count])
