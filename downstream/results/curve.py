"""Curve of worth: the figure of merit, and the gain on each set of data, against the words that encoders have read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.results.merit import Merit, Share, merits_of_encoders
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
    for place, name in enumerate(_names(merits[0])):
        shares = [_named(merit, name) for merit in merits]
        marker = f"{MARKERS[place % len(MARKERS)]}-"
        gains, errors = [share.gain for share in shares], [share.error for share in shares]
        label = name if place < MOST_NAMES else None
        right.errorbar(words, gains, errors, fmt=marker, capsize=2, linewidth=1, label=label)
    right.set_ylabel("both − vectors, in points ± standard error")
    for axes in (left, right):
        _set_words_axis(axes, words)
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    save_figure(figure, path)


def merits_by_words(rows: Sequence[NamedRow]) -> list[tuple[int, Merit]]:
    """Words read and figure of merit of each encoder, of the sets of data that all have; fewest words first."""
    known = [(words, merit) for _, words, merit in merits_of_encoders(rows) if words is not None]
    if not known:
        raise InputError(
            "there is no curve to draw: no encoder with a gain says how many words it has read (features that are "
            "dumped by this elmoc, of a model that was trained by it, do)"
        )
    common = set.intersection(*(set(_names(merit)) for _, merit in known))
    if not common:
        raise InputError("there is no curve to draw: the encoders have no set of data in common")
    return [
        (words, Merit([share for share in merit.shares if share.name in common]))
        for words, merit in sorted(known, key=lambda each: each[0])
    ]


def _names(merit: Merit) -> list[str]:
    return [share.name for share in merit.shares]


def _named(merit: Merit, name: str) -> Share:
    return next(share for share in merit.shares if share.name == name)


def _set_words_axis(axes: Any, words: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(words) / 1.5, max(words) * 1.5)
    axes.set_xlabel("words that the encoder has read")
    axes.axhline(0, color="black", linewidth=1)
    axes.grid(alpha=0.3)
