"""Picture: the uses of a word in two dimensions, coloured by cluster, with some of their contexts written in."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError
from elmoc.files.figures import new_figure, save_figure
from elmoc.looking.clusters import cluster, principal_components, telling_words
from elmoc.looking.uses import Use, use_vectors
from elmoc.model import ElmoC

# Okabe and Ito's, which the colour-blind can tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Principal components in which clusters are looked for; two of them are shown.
COMPONENTS = 5
MOST_LABELS, LABEL_WORDS = 40, 2


def draw_uses(
    elmo: ElmoC,
    uses: Sequence[Use],
    output: Path | str,
    *,
    title: str,
    layer: str,
) -> list[list[str]]:
    """Draw the uses in their first two principal components; returns the telling words of each cluster.

    `uses` are at least three, whose vectors differ; `layer` is as in `use_vectors`; `output` is replaced when it is
    there.
    """
    figure = new_figure(11, 8.5)
    points = principal_components(use_vectors(elmo, uses, layer), COMPONENTS)
    if len(uses) < 3 or not np.ptp(points[:, 0]) > 1e-6:
        raise InputError(
            f"a picture needs 3 uses with different vectors, not {len(uses)}: give more text (no --layer 0)"
        )
    labels = cluster(points)
    words = telling_words(uses, labels, 6)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # such characters are drawn as boxes
        _draw(figure, points[:, :2], labels, words, title)
        _write_labels(figure.axes[0], uses, points[:, :2], labels)
        save_figure(figure, output)
    return words


def _draw(figure: Any, points: np.ndarray, labels: np.ndarray, words: list[list[str]], title: str) -> None:
    axes = figure.add_subplot()
    for number, telling in enumerate(words):
        mine = points[labels == number]
        name = f" {', '.join(telling) or '–'}  ({len(mine):,})".replace("$", r"\$")  # one with _ first is in no legend
        axes.scatter(mine[:, 0], mine[:, 1], s=22, alpha=0.65, linewidths=0, color=COLOURS[number], label=name)
    axes.set_title(title, loc="left", fontsize=13, parse_math=False)
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_color("#cccccc")
    axes.margins(0.08)
    axes.legend(
        title="words near the uses of each cluster",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=2,
        frameon=False,
        alignment="left",
    )


def _write_labels(axes: Any, uses: Sequence[Use], points: np.ndarray, labels: np.ndarray) -> None:
    """Write a few words of context beside some points, where no label covers another."""
    from matplotlib.patheffects import withStroke

    axes.figure.canvas.draw()  # from here on it is known where everything stands
    renderer, inside, taken = axes.figure.canvas.get_renderer(), axes.get_window_extent(), list[Any]()
    for index in np.random.default_rng(0).permutation(len(points))[: 6 * MOST_LABELS]:
        if len(taken) == MOST_LABELS:
            break
        near = uses[index].marked(LABEL_WORDS).replace("… ", "").replace(" …", "").replace("[", "").replace("]", "")
        text = axes.annotate(
            "".join(each if each.isprintable() else " " for each in near),
            points[index],
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=7.5,
            color=COLOURS[int(labels[index])],
            parse_math=False,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )
        text.set_in_layout(False)
        box = text.get_window_extent(renderer).padded(3.0)  # pixels
        if any(box.overlaps(other) for other in taken) or not (inside.x0 < box.x0 and box.x1 < inside.x1):
            text.remove()
        else:
            taken.append(box)
