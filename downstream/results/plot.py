"""Plot of the gains of a table, each with its interval."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.results.comparison import PAPER
from downstream.results.row_names import NamedRow, several_encoders
from elmoc.errors import InputError
from elmoc.files.figures import new_figure, save_figure

STYLES = {"both": ("o", "-", "C0", "features and word vectors"), "features": ("s", "--", "C1", "features alone")}
"""Kind of inputs → marker, line, colour and name: the kinds differ in more than colour."""
BETWEEN = 0.3
"""The distance between the kinds of one row; rows are 1 apart."""
MOST_ROWS = 500
"""A picture is 93 pixels high for each, and has at most 65,535."""


def draw_gains(rows: Sequence[NamedRow], path: Path) -> None:
    """Draw the gains over word vectors alone, a row for each task and data set.

    A marker is filled where the interval leaves out 0. Raises `InputError` without any gain, or without matplotlib.
    """
    figure = new_figure(9, 1.6)
    drawn = [row for row in rows if row.gains]
    if not drawn:
        raise InputError("there is no gain to draw: no task has results both with and without --inputs vectors")
    if len(drawn) > MOST_ROWS:
        raise InputError(f"{len(drawn):,} rows are more than a picture has room for: draw at most {MOST_ROWS}")
    figure.set_figheight(1.6 + 0.62 * len(drawn))
    axes = figure.subplots()
    axes.axvline(0, color="black", linewidth=1)
    for place, row in enumerate(drawn):
        _draw_row(axes, row, place)
    several = several_encoders(rows)
    names = ["\n".join([f"{row.first.task}  {row.dataset}", *([row.encoder] if several else [])]) for row in drawn]
    axes.set_yticks(range(len(drawn)), names, parse_math=False)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("gain over word vectors alone, in points, with its 95 % interval over test items")
    for marker, line, colour, name in STYLES.values():
        axes.plot([], [], marker + line, color=colour, label=name)
    axes.plot([], [], "o", color="C0", markerfacecolor="white", linestyle="none", label="hollow: interval holds 0")
    axes.plot([], [], "x", color="black", linestyle="none", label="Li et al. (2019), on the paper's data")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small", frameon=False)
    save_figure(figure, path)


def _draw_row(axes: Any, row: NamedRow, place: int) -> None:
    for (kind, (marker, line, colour, _)), shift in zip(STYLES.items(), (-BETWEEN / 2, BETWEEN / 2), strict=True):
        if kind in row.gains:
            gain, height = row.gains[kind], place + shift
            ends = (gain.interval.low, gain.interval.high)
            axes.plot(ends, (height, height), line, color=colour, linewidth=1.6)
            axes.plot(ends, (height, height), "|", color=colour, markersize=6)
            face = colour if gain.clear else "white"
            axes.plot(gain.points, height, marker, color=colour, markerfacecolor=face, markersize=7)
            right_edge = {"xy": (1, height), "xycoords": ("axes fraction", "data"), "xytext": (6, 0)}
            style = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
            axes.annotate(f"{gain.points:+.1f}", **right_edge, **style)
    if row.first.task in PAPER:
        axes.plot(PAPER[row.first.task], place, "x", color="black", markersize=7)
