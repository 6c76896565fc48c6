"""Curve of worth: the figure of merit, and the gain on each set of data, against the words that encoders have read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.results.merit import Merit, figure_of_merit, rows_of_encoders, training_words
from downstream.results.row_names import NamedRow
from elmoc.errors import InputError
from elmoc.files.figures import new_figure, save_figure

MARKERS = "os^vD*PX"
"""Of sets of data in turn, which so differ in more than colour."""
MOST_NAMES = 40
"""Of sets of data in the legend."""


def draw_curve(rows: Sequence[NamedRow], path: Path) -> None:
    """Draw the figure of merit, and the gains in points, of encoders against the words they have read.

    The figure of merit is that of the sets of data which all of these encoders have. Raises `InputError` where no
    encoder says what it has read, where they have no set of data in common, or without matplotlib.
    """
    figure = new_figure(11, 5)
    points = merits_by_words(rows)
    left, right = figure.subplots(1, 2)
    words = [count for count, _ in points]
    merits = [merit for _, merit in points]
    left.errorbar(words, [each.value for each in merits], [each.error for each in merits], fmt="o-", capsize=3)
    left.axhline(1, color="black", linewidth=1, linestyle=":")
    left.set_ylabel("figure of merit ± standard error (1: the gains of Li et al. 2019)")
    for place, shares in enumerate(zip(*(merit.shares for merit in merits), strict=True)):
        marker = f"{MARKERS[place % len(MARKERS)]}-"
        gains, errors = [share.gain for share in shares], [share.error for share in shares]
        label = shares[0].name.replace("$", r"\$") if place < MOST_NAMES else None
        right.errorbar(words, gains, errors, fmt=marker, capsize=2, linewidth=1, label=label)
    right.set_ylabel("both − vectors, in points ± standard error")
    for axes in (left, right):
        _set_words_axis(axes, words)
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    save_figure(figure, path)


def merits_by_words(rows: Sequence[NamedRow]) -> list[tuple[int, Merit]]:
    """Words read and figure of merit of each encoder, of the sets of data that all have; fewest words first.

    The shares of all of them are of the same sets of data, in the same order.
    """
    known: list[tuple[int, dict[str, NamedRow]]] = []
    for own in rows_of_encoders(rows).values():
        words, with_share = training_words(own), [row for row in own if figure_of_merit([row])]
        if words is not None and with_share:
            known.append((words, {row.first.comparable: row for row in with_share}))
    if not known:
        raise InputError(
            "there is no curve to draw: no encoder with a gain says how many words it has read (features that are "
            "dumped by this elmoc, of a model that was trained by it, do)"
        )
    common = [compared for compared in known[0][1] if all(compared in own for _, own in known)]
    points = [(words, figure_of_merit([own[compared] for compared in common])) for words, own in known]
    found = [(words, merit) for words, merit in points if merit is not None]
    if not found:
        raise InputError("there is no curve to draw: the encoders have no set of data in common")
    return sorted(found, key=lambda each: each[0])


def _set_words_axis(axes: Any, words: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(words) / 1.5, max(words) * 1.5)
    axes.set_xlabel("words that the encoder has read")
    axes.axhline(0, color="black", linewidth=1)
    axes.grid(alpha=0.3)
