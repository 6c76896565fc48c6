"""What do the gains of a table look like, each with its interval?"""

from collections.abc import Sequence
from pathlib import Path

from downstream.results.table_rows import NamedRow
from downstream.results.table_text import PAPER, several_encoders
from elmoc.errors import InputError
from elmoc.files import atomic_path

STYLES = {"both": ("o", "-", "C0", "features and word vectors"), "features": ("s", "--", "C1", "features alone")}
"""Kind of inputs → marker, line, colour and name: every kind has a form of its own."""
BETWEEN = 0.3
"""How far apart the kinds of one row stand; rows are 1 apart."""


def draw_gains(rows: Sequence[NamedRow], path: Path) -> None:
    """Draw the gains over word vectors alone as a PNG, a row for each task and data set.

    A marker is filled where the interval leaves out 0. Raises `InputError` without any gain, or without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'elmoc[plots]'") from None
    drawn = [named for named in rows if named.row.gains]
    if not drawn:
        raise InputError("there is no gain to draw: no task has results both with and without --inputs vectors")
    figure = Figure(figsize=(9, 1.6 + 0.62 * len(drawn)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.axvline(0, color="black", linewidth=1)
    several = several_encoders(rows)
    for place, named in enumerate(drawn):
        for (kind, (marker, line, colour, _)), shift in zip(STYLES.items(), (-BETWEEN / 2, BETWEEN / 2), strict=True):
            gain = named.row.gains.get(kind)
            if gain is None:
                continue
            height, ends = place + shift, (gain.interval.low, gain.interval.high)
            axes.plot(ends, (height, height), line, color=colour, linewidth=1.6)
            axes.plot(ends, (height, height), "|", color=colour, markersize=6)
            face = colour if gain.clear else "white"
            axes.plot(gain.points, height, marker, color=colour, markerfacecolor=face, markersize=7)
            axes.annotate(
                f"{gain.points:+.1f}",
                (1, height),
                xycoords=("axes fraction", "data"),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        paper = PAPER.get(named.row.any.task)
        if paper is not None:
            axes.plot(paper, place, "x", color="black", markersize=7)
    names = [
        "\n".join([named.row.any.task, named.dataset, *([named.encoder] if several else [])]).replace("\n", "  ", 1)
        for named in drawn
    ]
    axes.set_yticks(range(len(drawn)), names)
    axes.set_ylim(len(drawn) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("gain over word vectors alone, in points, with its 95 % interval over test items")
    for marker, line, colour, name in STYLES.values():
        axes.plot([], [], marker + line, color=colour, label=name)
    axes.plot([], [], "o", color="C0", markerfacecolor="white", linestyle="none", label="hollow: interval holds 0")
    axes.plot([], [], "x", color="black", linestyle="none", label="Li et al. (2019), on the paper's data")
    figure.legend(loc="outside upper center", ncols=4, fontsize="small", frameon=False)
    with atomic_path(path) as partial:
        figure.savefig(partial, format="png", dpi=150)
