"""Figure of merit: what is an encoder worth on several sets of data, in one number, and
how sure is it?

It is the mean, over the sets of data, of the gain over word vectors alone divided by
the gain that the paper reports for the task: 1 is what ELMo-C gains in Li et al.
(2019, Table 2), 0 is nothing.

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
from itertools import chain
from statistics import fmean, variance

from downstream.printing import Table
from downstream.results.names import NONE
from downstream.results.rows import PAPER, Row
from elmoc.errors import InputError


@dataclass(frozen=True)
class Share:
    """The part of one set of data in the figure of merit.

    gain: in points, as are the standard errors.
    paper: the gain that the paper reports for the task, in points.
    seeds_error: None where single seeds leave it open.
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
        # Sets of data are independent: their variances add.
        by_items = [share.items_error / share.paper for share in shares]
        by_seeds = [(share.seeds_error or 0.0) / share.paper for share in shares]
        self.items_error = math.hypot(*by_items) / len(shares)
        self.seeds_error = math.hypot(*by_seeds) / len(shares)
        self.error = math.hypot(self.items_error, self.seeds_error)
        known = all(share.seeds_error is not None for share in shares)
        self.by_seeds = f"{self.seeds_error:.2f}" if known else "unknown"

    def __str__(self) -> str:
        return (
            f"{self.value:.2f} ± {self.error:.2f} "
            f"(standard error: {self.items_error:.2f} by items, "
            f"{self.by_seeds} by seeds; "
            f"mean of {len(self.shares)} gains, each divided by the paper's)"
        )


def figure_of_merit(rows: Sequence[Row], less: Sequence[Row] = ()) -> Merit | None:
    """The figure of merit of the rows of one encoder; None where no row has a gain that
    the paper reports, too.

    Args:
        rows: of one encoder.
        less: rows of another encoder. The figure is then the difference of the two, on
            the sets of data that both have.

    Raises:
        InputError: a set of data was run in several ways, and would count more than
            once.
    """
    rows = [row for row in rows if "both" in row.gains and row.first.task in PAPER]
    for place, count in Counter(row.first.place for row in rows).items():
        if count > 1:
            raise InputError(
                f"{' '.join(place)} was run in several ways: "
                "a figure of merit is of the results of one suite"
            )
    pairs = [(row, _alike(row, less)) for row in rows]
    shares = [_share(row, other) for row, other in pairs if other or not less]
    return Merit(shares) if shares else None


def _alike(row: Row, others: Sequence[Row]) -> Row | None:
    """The row of another encoder on the same data; of several the first with the same
    word vectors, if there is one.
    """
    alike = [each for each in others if each.first.comparable == row.first.comparable]
    # With other vectors the baselines differ, and so does the meaning of a gain.
    alike.sort(key=lambda other: other.word_vectors != row.word_vectors)
    return next((other for other in alike if "both" in other.gains), None)


def _share(row: Row, other: Row | None) -> Share:
    """The gain of one encoder on one set of data, or how far it is above another's."""
    points = row.gains["both"].points
    resampled = row.gains["both"].resampled
    groups = [row.results["both"].scores]
    baselines = [row.results["vectors"]]
    if other is not None:
        points -= other.gains["both"].points
        # The same draws of items for both: their luck cancels.
        resampled = resampled - other.gains["both"].resampled
        groups.append(other.results["both"].scores)
        baselines.append(other.results["vectors"])
    of_baselines = [each.scores for each in baselines]
    if other is not None and baselines[0].counts == baselines[1].counts:
        # Both have the same baseline: it is in neither side of the difference.
        seeds_error = _error_by_seeds(groups, of_baselines[:1])
    else:
        seeds_error = _error_by_seeds(groups + of_baselines)
    return Share(
        task=row.first.task,
        dataset=row.dataset,
        gain=points,
        paper=PAPER[row.first.task],
        items_error=float(resampled.std(ddof=1)),
        seeds_error=seeds_error,
    )


def _error_by_seeds(
    groups: Sequence[Sequence[float]], cancelled: Sequence[Sequence[float]] = ()
) -> float | None:
    """The standard error of a sum or difference of means over seeds, all runs having
    the same variance.

    Args:
        groups: the scores of the seeds, for each mean.
        cancelled: more scores, which only help to estimate the variance: their means
            cancel in the difference.

    Returns:
        In points; None where there are single seeds only.
    """
    # The variance is pooled: single groups have too few seeds to tell it.
    told = [group for group in chain(groups, cancelled) if len(group) > 1]
    degrees = sum(len(group) - 1 for group in told)
    if not degrees:
        return None
    squares = sum((len(group) - 1) * variance(group) for group in told)
    return math.sqrt(squares / degrees * sum(1 / len(group) for group in groups))


def rows_of_encoders(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Encoder → its rows."""
    # Rows of word vectors alone belong to no encoder.
    own = [row for row in rows if row.with_encoder]
    names = dict.fromkeys(row.encoder for row in own)
    return {name: [row for row in own if row.encoder == name] for name in names}


def merit_table(rows: Sequence[Row]) -> Table | None:
    """The figure of merit of each encoder, and how far it is above the first encoder's,
    on the data sets of both; None where no encoder has one.
    """
    of_encoders = rows_of_encoders(rows)
    merits = {name: figure_of_merit(own) for name, own in of_encoders.items()}
    found = {name: merit for name, merit in merits.items() if merit}
    if not found:
        return None
    first = next(iter(found))
    width = 7 if len(found) > 1 else 6
    lines = []
    for name, merit in found.items():
        above = figure_of_merit(of_encoders[name], less=of_encoders[first])
        cells = [
            name,
            str(len(merit.shares)),
            f"{merit.value:.2f}",
            f"{merit.error:.2f}",
            f"{merit.items_error:.2f}",
            merit.by_seeds,
            NONE,
        ]
        if above and name != first:
            cells[-1] = f"{above.value:+.2f} ± {above.error:.2f} ({len(above.shares)})"
        # A single encoder is above no other.
        lines.append(cells[:width])
    headers = ["encoder", "data sets", "figure of merit", "standard error"]
    headers += ["by items", "by seeds", f"− {first} (data sets of both)"]
    title = "Figure of merit: mean of (both − vectors) / the paper's gain"
    return Table(title, headers[:width], lines, right=headers[1:])
