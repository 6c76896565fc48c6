"""Plot of gains against training data: what an encoder is worth where a task has little of it.

As Figure 1 of Peters et al. (2018) does for SNLI and SRL: a curve for each task, data set and encoder that has results
of several `--train-fraction`s.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.results.plot import STYLES
from downstream.results.records import percent
from downstream.results.row_names import NamedRow, several_encoders
from elmoc.errors import InputError
from elmoc.files.figures import new_figure, save_figure

MOST_CURVES = 20
"""More cannot be told apart."""


def draw_fractions(rows: Sequence[NamedRow], path: Path) -> None:
    """Draw the gains over word vectors alone against the part of the training data, with their intervals.

    Raises `InputError` where there are not results of two parts, or without matplotlib.
    """
    figure = new_figure(8, 5)
    curves = fraction_curves(rows)
    if not curves:
        raise InputError(
            "there is no curve to draw: no task has gains with two values of --train-fraction and else the same options"
        )
    if len(curves) > MOST_CURVES:
        raise InputError(f"{len(curves)} curves are more than a picture can show: draw at most {MOST_CURVES}")
    axes = figure.subplots()
    axes.axhline(0, color="black", linewidth=1)
    several = several_encoders(rows)
    for number, curve in enumerate(curves):
        _draw_curve(axes, curve, f"C{number % 10}", several)
    fractions = sorted({row.first.train_fraction for curve in curves for row in curve})
    axes.set_xscale("log")
    axes.set_xticks(fractions, [percent(fraction) for fraction in fractions])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_xlabel("part of the training data")
    axes.set_ylabel("gain over word vectors alone, in points, with its 95 % interval")
    figure.legend(loc="outside upper center", ncols=2, fontsize="small", frameon=False)
    save_figure(figure, path)


def fraction_curves(rows: Sequence[NamedRow]) -> list[list[NamedRow]]:
    """Rows with a gain that differ in the part of the training data alone, the least first; two of them at least."""
    groups: dict[str, dict[float, NamedRow]] = {}
    for row in rows:
        if row.gains:
            settings = {name: value for name, value in row.first.settings.items() if name != "train_fraction"}
            parts = [row.first.place, row.first.fingerprints, row.first.reader, settings, row.encoder, row.word_vectors]
            key = json.dumps(parts, sort_keys=True)
            groups.setdefault(key, {})[row.first.train_fraction] = row
    return [[group[fraction] for fraction in sorted(group)] for group in groups.values() if len(group) > 1]


def _draw_curve(axes: Any, curve: Sequence[NamedRow], colour: str, several: bool) -> None:
    first = curve[0]
    name = f"{first.first.task} {first.first.dataset}" + (f" {first.encoder}" if several else "")
    for kind, (marker, line, _, what) in STYLES.items():
        found = [(row.first.train_fraction, row.gains[kind]) for row in curve if kind in row.gains]
        if found:
            points = [gain.points for _, gain in found]
            ends = [
                [max(0.0, gain.points - gain.interval.low) for _, gain in found],
                [max(0.0, gain.interval.high - gain.points) for _, gain in found],
            ]
            places = [fraction for fraction, _ in found]
            label = f"{name}: {what}".replace("$", r"\$")
            axes.errorbar(places, points, ends, fmt=marker + line, color=colour, capsize=3, label=label)
