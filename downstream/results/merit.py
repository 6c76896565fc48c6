"""Figure of merit: one number for what an encoder is worth on several sets of data, and how sure it is.

It is the mean, over the sets of data, of the gain over word vectors alone divided by the gain that the paper reports
for the task: 1 is what ELMo-C gains in Li et al. (2019), 0 is nothing.

The gains of different sets of data are independent, so their variances add. That of a gain has two parts: by items,
from the paired bootstrap of the table; and by seeds, s² (1/n + 1/m) for n seeds of both and m of word vectors alone,
with the variance s² of a run pooled over the two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from downstream.results.comparison import PAPER, Row
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
        text = (
            f"{self.value:.2f} ± {self.error:.2f} (standard error: {self.items_error:.2f} by items, "
            f"{self.seeds_error:.2f} by seeds"
        )
        if self.unknown:
            text += f", which one seed leaves open for {', '.join(self.unknown)}"
        return f"{text}; mean of {len(self.shares)} gains, each divided by the paper's)"


def figure_of_merit(rows: Sequence[Row]) -> Merit | None:
    """The figure of merit of the rows of one encoder; None where no row has a gain that the paper reports, too."""
    shares = []
    for row in rows:
        if "both" in row.gains and row.first.task in PAPER:
            gain, name = row.gains["both"], f"{row.first.dataset} {row.first.split}"
            groups = [row.results[kind].scores for kind in ("both", "vectors")]
            error = _error_by_seeds(groups)
            shares.append(Share(row.first.task, name, gain.points, PAPER[row.first.task], gain.error, error))
    return Merit(shares) if shares else None


def merit_table(merits: Sequence[tuple[str, int | None, Merit]]) -> TextTable:
    """The figures of merit of encoders: name, words read, merit."""
    each = [merit for *_, merit in merits]
    columns = [
        Column("encoder", [name for name, *_ in merits]),
        Column("words read", [NONE if words is None else f"{words:,}" for _, words, _ in merits], right=True),
        Column("data sets", [str(len(merit.shares)) for merit in each], right=True),
        Column("figure of merit", [f"{merit.value:.2f}" for merit in each], right=True),
        Column("standard error", [f"{merit.error:.2f}" for merit in each], right=True),
        Column("by items", [f"{merit.items_error:.2f}" for merit in each], right=True),
        Column("by seeds", [f"{merit.seeds_error:.2f}" for merit in each], right=True),
    ]
    return TextTable("Figure of merit: mean of (both − vectors) / the paper's gain", columns)


def merits_of_encoders(rows: Sequence[NamedRow]) -> list[tuple[str, int | None, Merit]]:
    """Name, words read and figure of merit of each encoder that has one, in the order of the rows."""
    found = []
    for name in dict.fromkeys(row.encoder for row in rows if row.with_encoder):
        own = [row for row in rows if row.with_encoder and row.encoder == name]
        if merit := figure_of_merit(own):
            found.append((name, words_read(own), merit))
    return found


def words_read(rows: Sequence[Row]) -> int | None:
    """The words that an encoder has read in training, as its layer states say; None where they do not."""
    for row in rows:
        words = (row.with_encoder.features or {}).get("training_words") if row.with_encoder else None
        if isinstance(words, int) and words > 0:
            return words
    return None


def _error_by_seeds(groups: Sequence[Sequence[float]]) -> float | None:
    """The standard error of a difference of two means over seeds, of which all have the same variance."""
    degrees = sum(len(group) - 1 for group in groups)
    if not degrees:
        return None
    squares = sum((score - fmean(group)) ** 2 for group in groups for score in group)
    return math.sqrt(squares / degrees * sum(1 / len(group) for group in groups))


def _error_of_mean(errors: Sequence[float]) -> float:
    return math.sqrt(sum(error**2 for error in errors)) / len(errors)
