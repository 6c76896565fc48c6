"""Figure of merit: what is an encoder worth on several sets of data, in one number, and
how sure is it?

It is the mean, over the sets of data, of the gain over word vectors alone divided by
the gain that the paper reports
for the task: 1 is what ELMo-C gains in Li et al. (2019), 0 is nothing.

The gains of different sets of data are independent, so their variances add. A gain's
variance has two parts: by items, from the paired bootstrap of the table; and by seeds,
s² (1/n + 1/m) for n seeds of both and m of word vectors alone, with the variance s² of
a run pooled over the two.

Two encoders' figures are not independent: both are scored on the same items, whose luck
is shared, and a baseline that they share cancels, so that the variance of their
difference is s² (1/n + 1/n') by seeds, for n and n' seeds of both.

Seeds are of the probes. How far another training of the encoder would differ is in none
of this.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from downstream.printing import Column, Table
from downstream.results.rows import NONE, PAPER, Row
from elmoc.errors import InputError


@dataclass(frozen=True)
class Share:
    """What one set of data adds: the gain and the standard errors, in points; None
    where single seeds leave it open.
    """

    task: str
    dataset: str
    gain: float
    paper: float
    items_error: float
    seeds_error: float | None


class Merit:
    """The figure of merit of an encoder, or the difference of two, and its standard
    errors by items and by seeds.
    """

    def __init__(self, shares: Sequence[Share]) -> None:
        self.shares = shares
        self.value = fmean(share.gain / share.paper for share in shares)
        by_items = [(share.items_error / share.paper) ** 2 for share in shares]
        by_seeds = [((share.seeds_error or 0.0) / share.paper) ** 2 for share in shares]
        self.items_error, self.seeds_error = (
            math.sqrt(sum(each)) / len(shares) for each in (by_items, by_seeds)
        )
        self.error = math.hypot(self.items_error, self.seeds_error)
        known = all(share.seeds_error is not None for share in shares)
        self.by_seeds = f"{self.seeds_error:.2f}" if known else "unknown"

    def __str__(self) -> str:
        return (
            f"{self.value:.2f} ± {self.error:.2f} (standard error: {self.items_error:.2f} by items, {self.by_seeds} by "
            f"seeds; mean of {len(self.shares)} gains, each divided by the paper's)"
        )


def figure_of_merit(rows: Sequence[Row], less: Sequence[Row] = ()) -> Merit | None:
    """The figure of merit of the rows of one encoder; None where no row has a gain that
    the paper reports, too.

    Raises `InputError` for a set of data that was run in several ways, and would count
    more than once.

    less  rows of another encoder: the difference of the two figures is meant, on the
          sets of data that both have. Of several rows for one set of data, that with
          the same word vectors counts.
    """
    rows = [row for row in rows if "both" in row.gains and row.first.task in PAPER]
    counts = Counter(row.first.place for row in rows)
    if repeated := [" ".join(place) for place, count in counts.items() if count > 1]:
        raise InputError(
            f"{repeated[0]} was run in several ways: a figure of merit is of the results of one suite"
        )
    shares = []
    for row in rows:
        gain = row.gains["both"]
        both = row.results["both"]
        vectors = row.results["vectors"]
        points = gain.points
        items_error = gain.error
        groups = [both.scores, vectors.scores]
        cancelled = list[Sequence[float]]()
        if less:
            alike = [
                each
                for each in less
                if each.first.comparable == row.first.comparable
                and "both" in each.gains
            ]
            if not alike:
                continue
            other = next(
                (each for each in alike if each.word_vectors == row.word_vectors),
                alike[0],
            )
            others = [other.results["both"].scores, other.results["vectors"].scores]
            points -= other.gains["both"].points
            items_error = float(
                (gain.resampled - other.gains["both"].resampled).std(ddof=1)
            )
            if np.array_equal(vectors.counts, other.results["vectors"].counts):
                groups = [both.scores, others[0]]
                cancelled = [vectors.scores]
            else:
                groups += others
        seeds_error = _error_by_seeds(groups, cancelled)
        shares.append(
            Share(
                row.first.task,
                row.dataset,
                points,
                PAPER[row.first.task],
                items_error,
                seeds_error,
            )
        )
    return Merit(shares) if shares else None


def _error_by_seeds(
    groups: Sequence[Sequence[float]], cancelled: Sequence[Sequence[float]]
) -> float | None:
    """The standard error of a sum or difference of means over seeds, all runs having
    the same variance.

    cancelled  groups whose scores only help to estimate the variance: their means
    cancel in the difference
    """
    told = [*groups, *cancelled]
    degrees = sum(len(group) - 1 for group in told)
    if not degrees:
        return None
    squares = sum((score - fmean(group)) ** 2 for group in told for score in group)
    return math.sqrt(squares / degrees * sum(1 / len(group) for group in groups))


def rows_of_encoders(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Encoder → its rows."""
    names = dict.fromkeys(row.encoder for row in rows if row.with_encoder)
    return {name: [row for row in rows if row.encoder == name] for name in names}


def merit_table(rows: Sequence[Row]) -> Table | None:
    """The figure of merit of each encoder, and how far it is above the first encoder's,
    on the data sets of both.
    """
    of_encoders = rows_of_encoders(rows)
    merits = {
        name: merit
        for name, own in of_encoders.items()
        if (merit := figure_of_merit(own))
    }
    if not merits:
        return None
    cells = {
        "data sets": [str(len(merit.shares)) for merit in merits.values()],
        "figure of merit": [f"{merit.value:.2f}" for merit in merits.values()],
        "standard error": [f"{merit.error:.2f}" for merit in merits.values()],
        "by items": [f"{merit.items_error:.2f}" for merit in merits.values()],
        "by seeds": [merit.by_seeds for merit in merits.values()],
    }
    first, *others = merits
    if others:
        found = [
            figure_of_merit(of_encoders[name], less=of_encoders[first])
            for name in others
        ]
        differences = [
            f"{each.value:+.2f} ± {each.error:.2f} ({len(each.shares)})"
            if each
            else NONE
            for each in found
        ]
        cells[f"− {first} (data sets of both)"] = [NONE, *differences]
    columns = [
        Column("encoder", list(merits)),
        *(Column(name, each, right=True) for name, each in cells.items()),
    ]
    return Table(
        "Figure of merit: mean of (both − vectors) / the paper's gain", columns
    )
