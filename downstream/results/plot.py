"""Curve of worth: how do figure of merit and gains grow with the words that encoders have read?"""

import math
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from downstream.results.merit import Merit, figure_of_merit, rows_of_encoders, training_words
from downstream.results.rows import Row
from elmoc.errors import InputError
from elmoc.files.figures import new_figure, save_figure


def draw_curve(rows: Sequence[Row], path: Path) -> None:
    """Draw the figure of merit, and the gains in points, of encoders against the words they have read.

    Raises `InputError` where no encoder says what it has read, or where they have no set of data in common.
    """
    points = merits_by_words(rows)
    if not points:
        raise InputError("there is no curve to draw: encoders need words read (training_words), and data in common")
    words, merits = zip(*points, strict=True)
    figure = new_figure(9, 5)
    axes = figure.subplots()
    for place, shares in enumerate(zip(*(merit.shares for merit in merits), strict=True)):
        errors = [math.hypot(share.items_error, share.seeds_error or 0.0) for share in shares]
        marker = "os^vD*PX"[place % 8] + "-"  # sets of data differ in more than colour
        label = f"{shares[0].task} {shares[0].dataset}, in points".replace("$", r"\$")
        axes.errorbar(words, [share.gain for share in shares], errors, fmt=marker, capsize=2, label=label)
    values, errors = [each.value for each in merits], [each.error for each in merits]
    axes.errorbar(words, values, errors, fmt="k--", capsize=3, label="figure of merit (1: the gains of the paper)")
    axes.set(
        xscale="log", xlabel="words that the encoder has read", ylabel="gain of both over vectors ± standard error"
    )
    axes.axhline(0, color="black", linewidth=1)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    save_figure(figure, path)


def merits_by_words(rows: Sequence[Row]) -> list[tuple[int, Merit]]:
    """Words read and figure of merit of each encoder, of the sets of data that all have; fewest words first."""
    known: list[tuple[int, dict[str, Row]]] = []
    for own in rows_of_encoders(rows).values():
        words, alike = training_words(own), {row.first.comparable: row for row in own if figure_of_merit([row])}
        if words and alike:
            known.append((words, alike))
    common = set.intersection(*(set(own) for _, own in known)) if known else set()
    merits = [(words, figure_of_merit([own[key] for key in own if key in common])) for words, own in known]
    return sorted(((words, merit) for words, merit in merits if merit), key=itemgetter(0))
