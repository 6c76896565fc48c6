"""Which results are compared with which, and what comes out?

A row holds the results of one task and one set of data that differ in their inputs alone. Rows of different encoders
share the baseline, word vectors alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from downstream.results.bootstrap import Interval, interval, p_value, resampled_figures
from downstream.results.reading import Result, require_same_items
from downstream.results.records import mean_and_deviation
from elmoc.errors import InputError


@dataclass(frozen=True)
class Score:
    """The mean over seeds in percent, the standard deviation over seeds, and the interval of the mean over items."""

    mean: float
    deviation: float | None
    interval: Interval


@dataclass(frozen=True)
class Gain:
    """How much higher than of word vectors alone the mean is, in points; `p_value` is one-sided (no gain)."""

    points: float
    interval: Interval
    p_value: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.interval.low > 0 or self.interval.high < 0


@dataclass(frozen=True)
class Row:
    """One line of the table: the results, scores and gains of the kinds of inputs that there are."""

    results: Mapping[str, Result]
    scores: Mapping[str, Score]
    gains: Mapping[str, Gain]

    @property
    def any(self) -> Result:
        """One of the results, for what they have in common."""
        return next(iter(self.results.values()))

    @property
    def encoder(self) -> Result | None:
        """A result that names the encoder."""
        return self.results.get("both", self.results.get("features"))

    @property
    def word_vectors(self) -> Result | None:
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


def compare(
    results: Mapping[str, Result], *, figures: Callable[[np.ndarray], dict[str, np.ndarray]], resamples: int
) -> Row:
    """Scores and gains of a row with their intervals; `figures` are those of the task.

    Raises `InputError` when results are not of the same items, or do not follow from what they counted.
    """
    kinds = list(results)
    for result in results.values():
        require_same_items(next(iter(results.values())), result)
        _check_scores(result, figures)
    metric = results[kinds[0]].metric
    resampled = resampled_figures(
        [results[kind].counts for kind in kinds], figure=lambda counts: figures(counts)[metric], resamples=resamples
    )
    of_kind = dict(zip(kinds, resampled, strict=True))
    scores = {}
    for kind, result in results.items():
        mean, deviation = mean_and_deviation([run.score for run in result.runs])
        scores[kind] = Score(mean, deviation, interval(of_kind[kind]))
    gains = {}
    for kind in kinds:
        if kind != "vectors" and "vectors" in results:
            differences = np.round(of_kind[kind] - of_kind["vectors"], 9)  # equal systems differ by rounding errors
            points = scores[kind].mean - scores["vectors"].mean
            gains[kind] = Gain(points, interval(differences), p_value(differences))
    return Row(results, scores, gains)


def _pairs(group: Sequence[Result]) -> list[tuple[str | None, str | None]]:
    """BidirectionalEncoder and word vectors of each row that the results of a group fill."""
    tables = [result.word_vectors for result in group if result.inputs == "vectors"]
    pairs: list[tuple[str | None, str | None]] = [
        (result.encoder, result.word_vectors) for result in group if result.inputs == "both"
    ]
    for result in group:
        if result.inputs == "features" and all(result.encoder != encoder for encoder, _ in pairs):
            pairs += [(result.encoder, table) for table in tables or [None]]
    pairs += [(None, table) for table in tables if all(table != vectors for _, vectors in pairs)]
    return list(dict.fromkeys(pairs))


def _check_scores(result: Result, figures: Callable[[np.ndarray], dict[str, np.ndarray]]) -> None:
    for run in result.runs:
        try:
            again = figures(run.counts.sum(axis=0))[result.metric]
        except (KeyError, ValueError, IndexError):
            again = np.array(np.nan)
        if not abs(float(again) - run.score) < 0.01:
            raise InputError(
                f"{run.origin}: the {result.metric} of seed {run.seed}, {run.score:.2f}, does not follow from its "
                "counts, as if another version had written it: run the probe again and remove that line"
            )
