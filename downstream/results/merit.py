"""Figure of merit: one number for what an encoder is worth on several sets of data, and how sure it is.

It is the mean, over the sets of data, of the gain over word vectors alone divided by the gain that the paper reports
for the task: 1 is what ELMo-C gains in Li et al. (2019), 0 is nothing.

The gains of different sets of data are independent, so their variances add. That of a gain has two parts: by items,
from the paired bootstrap of the table; and by seeds, s² (1/n + 1/m) for n seeds of both and m of word vectors alone,
with the variance s² of a run pooled over the two.

Two encoders' figures are not independent: both are scored on the same items, whose luck is shared, and a baseline that
they share cancels, so that the variance of their difference is s² (1/n + 1/n') by seeds, for n and n' seeds of both.

Seeds are those of the probes. What another seed of the encoder's own training would have given is in none of this.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from downstream.results.comparison import PAPER, Row
from downstream.results.reading import require_same_items
from downstream.results.row_names import NONE, NamedRow
from downstream.results.text_table import Column, TextTable


@dataclass(frozen=True)
class Share:
    """What one set of data adds: the gain and the standard errors, in points; None where single seeds leave it open."""

    task: str
    dataset: str
    gain: float
    paper: float
    items_error: float
    seeds_error: float | None

    @property
    def name(self) -> str:
        """Of the task and the set of data."""
        return f"{self.task} {self.dataset}"

    @property
    def error(self) -> float:
        """By items and by seeds, as far as known."""
        return math.hypot(self.items_error, self.seeds_error or 0.0)

    @property
    def value(self) -> float:
        """The gain in units of the paper's."""
        return self.gain / self.paper


@dataclass(frozen=True)
class Merit:
    """The figure of merit of an encoder, and its standard errors."""

    shares: Sequence[Share]

    @property
    def value(self) -> float:
        """The mean of the gains in units of the paper's."""
        return fmean(share.value for share in self.shares)

    @property
    def items_error(self) -> float:
        """By items: of other test sets of the same kind."""
        return _error_of_mean([share.items_error / share.paper for share in self.shares])

    @property
    def seeds_error(self) -> float:
        """By seeds: of training the probes again; of those sets of data where it is known."""
        return _error_of_mean([(share.seeds_error or 0.0) / share.paper for share in self.shares])

    @property
    def error(self) -> float:
        """Both together."""
        return math.hypot(self.items_error, self.seeds_error)

    @property
    def unknown(self) -> list[str]:
        """The sets of data whose error by seeds is not known."""
        return [share.dataset for share in self.shares if share.seeds_error is None]

    def __str__(self) -> str:
        by_seeds = f"{self.seeds_error:.2f} by seeds"
        if len(self.unknown) == len(self.shares):
            by_seeds = "by seeds not known, of one seed each"
        elif self.unknown:
            by_seeds += f", which one seed leaves open for {', '.join(self.unknown)}"
        gains = f"mean of {len(self.shares)} gains, each" if len(self.shares) > 1 else "a gain"
        return (
            f"{self.value:.2f} ± {self.error:.2f} (standard error: {self.items_error:.2f} by items, {by_seeds}; "
            f"{gains} divided by the paper's)"
        )


def figure_of_merit(rows: Sequence[NamedRow]) -> Merit | None:
    """The figure of merit of the rows of one encoder; None where no row has a gain that the paper reports, too."""
    shares = []
    for row in rows:
        if "both" in row.gains and row.first.task in PAPER:
            gain = row.gains["both"]
            groups = [row.results[kind].scores for kind in ("both", "vectors")]
            error = _error_by_seeds(groups)
            shares.append(Share(row.first.task, row.dataset, gain.points, PAPER[row.first.task], gain.error, error))
    return Merit(shares) if shares else None


def merit_difference(rows: Sequence[NamedRow], others: Sequence[NamedRow]) -> Merit | None:
    """The figure of merit of one encoder's rows less that of another's, on what both have; None where that is nothing.

    Rows are of the same data and settings; of several in `others`, that with the same word vectors counts. Raises
    `InputError` where they do not count the same items.
    """
    shares = []
    for row in rows:
        alike = [other for other in others if other.first.comparable == row.first.comparable and "both" in other.gains]
        if "both" not in row.gains or row.first.task not in PAPER or not alike:
            continue
        vectors = row.results["vectors"].word_vectors
        other = next((each for each in alike if each.results["vectors"].word_vectors == vectors), alike[0])
        require_same_items(other.first, row.first)
        differences = row.resampled_gains["both"] - other.resampled_gains["both"]
        shares.append(
            Share(
                task=row.first.task,
                dataset=row.dataset,
                gain=row.gains["both"].points - other.gains["both"].points,
                paper=PAPER[row.first.task],
                items_error=float(differences.std(ddof=1)),
                seeds_error=_error_of_difference_by_seeds(row, other),
            )
        )
    return Merit(shares) if shares else None


def _error_of_difference_by_seeds(row: Row, other: Row) -> float | None:
    both, baselines = ([each.results[kind] for each in (row, other)] for kind in ("both", "vectors"))
    scores = [each.scores for each in both]
    if np.array_equal(baselines[0].counts, baselines[1].counts):
        return _error_by_seeds(scores, cancelled=[baselines[0].scores])
    return _error_by_seeds([*scores, *(each.scores for each in baselines)])


def merit_table(merits: Sequence[tuple[str, int | None, Merit]]) -> TextTable:
    """The figures of merit of encoders: name, words read, merit."""
    each = [merit for *_, merit in merits]
    columns = [
        Column("encoder", [name for name, *_ in merits]),
        Column("words read", [NONE if words is None else f"{words:,}" for _, words, _ in merits], right=True),
        Column("data sets", [str(len(merit.shares)) for merit in each], right=True),
        Column("figure of merit", [f"{merit.value:.2f}" for merit in each], right=True),
        *_error_columns(each),
    ]
    return TextTable("Figure of merit: mean of (both − vectors) / the paper's gain", columns)


def differences_table(rows: Sequence[NamedRow]) -> TextTable | None:
    """The figure of merit of each encoder less that of the first, on the data that both have; None without any."""
    (first, reference), *others = list(rows_of_encoders(rows).items()) or [("", [])]
    found = [(name, merit) for name, own in others if (merit := merit_difference(own, reference))]
    if not found:
        return None
    each = [merit for _, merit in found]
    columns = [
        Column("encoder", [name for name, _ in found]),
        Column("data sets", [str(len(merit.shares)) for merit in each], right=True),
        Column("difference", [f"{merit.value:+.2f}" for merit in each], right=True),
        *_error_columns(each),
    ]
    return TextTable(f"Figure of merit less that of {first}, on the data sets of both", columns)


def merits_of_encoders(rows: Sequence[NamedRow]) -> list[tuple[str, int | None, Merit]]:
    """Name, words read and figure of merit of each encoder that has one, in the order of their results."""
    return [
        (name, training_words(own), merit)
        for name, own in rows_of_encoders(rows).items()
        if (merit := figure_of_merit(own))
    ]


def rows_of_encoders(rows: Sequence[NamedRow]) -> dict[str, list[NamedRow]]:
    """Encoder → its rows; encoders in the order of the files that their results are in."""
    found: dict[str, list[NamedRow]] = {}
    for row in rows:
        if row.with_encoder:
            found.setdefault(row.encoder, []).append(row)
    first = {name: min(row.with_encoder.order for row in own if row.with_encoder) for name, own in found.items()}
    return {name: found[name] for name in sorted(found, key=first.__getitem__)}


def repeated_data(rows: Sequence[NamedRow]) -> list[str]:
    """Notes on sets of data that an encoder's figure of merit counts more than once, being run in several ways."""
    notes = []
    for name, own in rows_of_encoders(rows).items():
        counts = Counter(" ".join(row.first.place) for row in own if "both" in row.gains)
        if several := [data for data, count in counts.items() if count > 1]:
            notes.append(
                f"WARNING: the figure of merit of {name} counts {', '.join(several)} more than once, as they were run "
                "in several ways: give the results of one suite for each encoder."
            )
    return notes


def training_words(rows: Sequence[Row]) -> int | None:
    """The words that an encoder has read in training, as its layer states say; None where they do not."""
    for row in rows:
        words = (row.with_encoder.features or {}).get("training_words") if row.with_encoder else None
        if isinstance(words, int) and words > 0:
            return words
    return None


def _error_columns(merits: Sequence[Merit]) -> list[Column]:
    by_seeds = [
        "unknown"
        if len(merit.unknown) == len(merit.shares)
        else f"{merit.seeds_error:.2f}" + (f" ({len(merit.unknown)} unknown)" if merit.unknown else "")
        for merit in merits
    ]
    return [
        Column("standard error", [f"{merit.error:.2f}" for merit in merits], right=True),
        Column("by items", [f"{merit.items_error:.2f}" for merit in merits], right=True),
        Column("by seeds", by_seeds, right=True),
    ]


def _error_by_seeds(groups: Sequence[Sequence[float]], *, cancelled: Sequence[Sequence[float]] = ()) -> float | None:
    """The standard error of a sum or difference of means over seeds, all runs having the same variance.

    cancelled  groups whose scores only help to estimate the variance: their means cancel in the difference
    """
    told = [*groups, *cancelled]
    degrees = sum(len(group) - 1 for group in told)
    if not degrees:
        return None
    squares = sum((score - fmean(group)) ** 2 for group in told for score in group)
    return math.sqrt(squares / degrees * sum(1 / len(group) for group in groups))


def _error_of_mean(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors)) / len(errors)
