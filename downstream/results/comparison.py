"""Comparison of results: the rows of the table, each with its scores, its gains and how sure they are.

A row holds the results of one task and one set of data that differ in their inputs alone. Rows of different encoders
share the baseline, word vectors alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from downstream.results.bootstrap import Interval, interval, p_value, resampled_scores
from downstream.results.reading import Result, require_same_items
from downstream.results.records import format_score, mean_and_deviation
from elmoc.errors import InputError, shortened

Metrics = Callable[[np.ndarray], dict[str, np.ndarray]]
"""Those of a task: float64 [..., K] of summed counts → name → [...]."""
PAPER = {"snli": 1.1, "coref": 4.0, "sst5": 2.5, "ner": 1.3, "srl": 2.2}
"""Task → the gain of ELMo-C over fastText alone in Li et al. (2019)."""


@dataclass(frozen=True)
class Score:
    """The mean over seeds in percent, the standard deviation over seeds, and the interval of the mean over items."""

    mean: float
    deviation: float | None
    interval: Interval

    def __str__(self) -> str:
        return format_score(self.mean, self.deviation)


@dataclass(frozen=True)
class Gain:
    """The difference of the mean to that of word vectors alone, in points; `p_value` is one-sided (no gain).

    `error` is its standard deviation over the resamples.
    """

    points: float
    interval: Interval
    p_value: float
    error: float

    def __str__(self) -> str:
        points, low, high = (f"{round(number, 2) + 0.0:+.2f}" for number in (self.points, *astuple(self.interval)))
        return f"{points} [{low}, {high}]"  # adding 0.0 makes 0 of -0

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True)
class Row:
    """One line of the table: kind of inputs → result, score, and gain over word vectors alone.

    resampled_gains  the gain in each resample, float64 [R]; rows with as many items have the same draws of them
    """

    results: Mapping[str, Result]
    scores: Mapping[str, Score]
    gains: Mapping[str, Gain]
    resampled_gains: Mapping[str, np.ndarray]

    @property
    def first(self) -> Result:
        """One of the results, for what they have in common."""
        return next(iter(self.results.values()))

    @property
    def with_encoder(self) -> Result | None:
        """A result that names the encoder."""
        return self.results.get("both", self.results.get("features"))

    @property
    def with_vectors(self) -> Result | None:
        """A result that names the word vectors."""
        return self.results.get("both", self.results.get("vectors"))


def arrange(results: Sequence[Result]) -> list[dict[str, Result]]:
    """The rows, each kind of inputs → its result; in the order in which they come first.

    A row has one encoder and one table of word vectors (or lacks one of them). Word vectors alone stand in the rows of
    all encoders that they may be compared with, and features alone in those of all word vectors.
    """
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.comparable, []).append(result)
    rows = []
    for group in groups.values():
        known = {(result.inputs, result.encoder, result.word_vectors): result for result in group}
        for encoder, vectors in _pairs(group):
            keys = (("vectors", None, vectors), ("features", encoder, None), ("both", encoder, vectors))
            rows.append({key[0]: known[key] for key in keys if key in known})
    return rows


def compare(results: Mapping[str, Result], *, metrics: Metrics, resamples: int) -> Row:
    """Scores and gains of a row with their intervals.

    Args:
        results: kind of inputs → result.
        metrics: those of the task.
        resamples: of the bootstrap.

    Raises:
        InputError: results are not of the same items, or do not follow from what they counted.
    """
    kinds = list(results)
    first = results[kinds[0]]
    for result in results.values():
        require_same_items(first, result)
        _check_scores(result, metrics)
    resampled = resampled_scores(
        [result.counts for result in results.values()],
        metric=lambda counts: metrics(counts)[first.metric],
        resamples=resamples,
    )
    of_kind = dict(zip(kinds, resampled, strict=True))
    scores = {
        kind: Score(*mean_and_deviation(result.scores), interval(of_kind[kind])) for kind, result in results.items()
    }
    gains, resampled_gains = {}, {}
    for kind in kinds:
        if kind != "vectors" and "vectors" in results:
            differences = np.round(of_kind[kind] - of_kind["vectors"], 9)  # equal systems differ by rounding errors
            points = scores[kind].mean - scores["vectors"].mean
            gains[kind] = Gain(points, interval(differences), p_value(differences), float(differences.std(ddof=1)))
            resampled_gains[kind] = differences
    return Row(results, scores, gains, resampled_gains)


def _pairs(group: Sequence[Result]) -> list[tuple[str | None, str | None]]:
    """Encoder and word vectors of each row that the results of a group fill."""
    tables = [result.word_vectors for result in group if result.inputs == "vectors"]
    pairs: list[tuple[str | None, str | None]] = [
        (result.encoder, result.word_vectors) for result in group if result.inputs == "both"
    ]
    for result in group:
        if result.inputs == "features" and all(result.encoder != encoder for encoder, _ in pairs):
            pairs += [(result.encoder, table) for table in tables or [None]]
    pairs += [(None, table) for table in tables if all(table != vectors for _, vectors in pairs)]
    return list(dict.fromkeys(pairs))


def _check_scores(result: Result, metrics: Metrics) -> None:
    for origin, seed, score, counts in zip(result.origins, result.seeds, result.scores, result.counts, strict=True):
        try:
            again = float(metrics(counts.sum(axis=0))[result.metric])
        except (KeyError, ValueError, IndexError):
            again = np.nan
        if not abs(again - score) < 0.01:
            raise InputError(
                f"{origin}: the {shortened(result.metric)} of seed {seed}, {score:.2f}, does not follow from its "
                "counts, as if another version had written it: run the probe again and remove that line"
            )
