"""Rows of the table of results: which results are compared, how sure are their gains,
and what are they called?

A row holds the results of one task and one set of data that differ in their inputs
alone. Rows of different encoders share the baseline, word vectors alone.

Intervals are from the paired bootstrap over test items of Koehn (2004) and
Berg-Kirkpatrick, Burkett and Klein (2012): draw as many items as the test set has, with
replacement, score them, and repeat. Systems that are compared, and all their seeds, are
scored on the same draws. The spread is over other test sets of the same kind, for the
models that were trained; the luck of the training shows in the standard deviation over
seeds instead.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from downstream.results.bootstrap import interval, resampled_scores
from downstream.results.names import NONE, encoder_names, vectors_names
from downstream.results.records import Result, read_results, without_state_settings

# Name → the function that loads the task.
Tasks = Mapping[str, Callable[[], Any]]

# Task → the gain of ELMo-C over fastText alone in Li et al. (2019). A task
# without one is left out of the figure of merit.
PAPER = {"snli": 1.1, "coref": 4.0, "sst5": 2.5, "ner": 1.3, "srl": 2.2}
# More would move the ends of an interval by less than seeds of the draws do.
RESAMPLES = 10_000
# Equal systems differ by rounding errors, which an interval would take for a gain.
_DECIMALS = 9
# Characters of a fingerprint that tell files of one name apart.
_SHORT = 6


@dataclass(frozen=True)
class Gain:
    """How far the mean is above that of word vectors alone, in points, and how sure
    this is.

    interval: the middle 95 % of the resamples.
    error: the standard deviation over the resamples.
    resampled: the gain in each resample, float64 [R]. Rows with the same number of
        items have the same draws of them.
    """

    points: float
    interval: tuple[float, float]
    error: float
    resampled: np.ndarray

    def __str__(self) -> str:
        low, high = self.interval
        return f"{_signed(self.points)} [{_signed(low)}, {_signed(high)}]"


def _signed(points: float) -> str:
    # Adding 0.0 makes 0 of −0.
    rounded = round(points, 2) + 0.0
    return f"{rounded:+.2f}"


@dataclass
class Row:
    """One line of the table: kind of inputs → result, and its gain over word vectors
    alone.

    dataset: data set and split, and the facts in which the row differs from others on
        them: `wnut17 dev, hidden_size 100`.
    encoder: its name; "–" without one.
    word_vectors: their name; "–" without any.
    """

    results: Mapping[str, Result]
    gains: dict[str, Gain] = field(default_factory=dict)
    dataset: str = ""
    encoder: str = NONE
    word_vectors: str = NONE

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


def compared_rows(
    paths: Sequence[Path], tasks: Tasks, *, resamples: int = RESAMPLES
) -> list[Row]:
    """The rows of the table of these results.

    They stand in the order of the tasks; within a task rows of one data set stand
    together, less training data first.

    Raises:
        InputError: see `read_results`.
    """
    results = read_results(paths)
    encoders = encoder_names(results)
    vectors = vectors_names(results)
    places = [result.place for result in results]
    order = list(tasks)

    def place_in_table(row: Row) -> tuple[int, int, float]:
        first = row.first
        share = first.settings["train_fraction"]
        return order.index(first.task), places.index(first.place), share

    rows = sorted(_arrange(results), key=place_in_table)
    for row in rows:
        _compare(row, tasks[row.first.task](), resamples)
        if row.with_encoder:
            row.encoder = encoders[str(row.with_encoder.encoder)]
        if row.with_vectors:
            row.word_vectors = vectors[str(row.with_vectors.word_vectors)]
    for row in rows:
        alike = [other for other in rows if other.first.place == row.first.place]
        name = f"{row.first.dataset} {row.first.split}"
        row.dataset = ", ".join([name, *_differences(row, alike)])
    return rows


def _arrange(results: Sequence[Result]) -> list[Row]:
    """The rows, in the order in which they come first, still without scores and names.

    A row has one encoder and one table of word vectors (or lacks one of them). Word
    vectors alone stand in the rows of all encoders that they may be compared with, and
    features alone in the rows of all word vectors.
    """
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.comparable, []).append(result)
    rows = []
    for group in groups.values():
        known: dict[tuple[str, str | None, str | None], Result] = {}
        for result in group:
            known[result.inputs, result.encoder, result.word_vectors] = result
        for encoder, table in _pairs(group):
            keys = (
                ("vectors", None, table),
                ("features", encoder, None),
                ("both", encoder, table),
            )
            rows.append(Row({key[0]: known[key] for key in keys if key in known}))
    return rows


def _pairs(group: Sequence[Result]) -> list[tuple[str | None, str | None]]:
    """The encoder and the word vectors of each row of comparable results."""
    tables = [each.word_vectors for each in group if each.inputs == "vectors"]
    pairs: dict[tuple[str | None, str | None], None] = {}
    for result in group:
        if result.inputs == "both":
            pairs[result.encoder, result.word_vectors] = None
    # Features alone stand beside both, where both were run.
    with_both = {encoder for encoder, _ in pairs}
    for result in group:
        if result.inputs == "features" and result.encoder not in with_both:
            for table in tables or [None]:
                pairs[result.encoder, table] = None
    with_encoder = {table for _, table in pairs}
    for table in tables:
        if table not in with_encoder:
            pairs[None, table] = None
    return list(pairs)


def _compare(row: Row, task: Any, resamples: int) -> None:
    """Give the row its gains."""
    counts = []
    for result in row.results.values():
        counts.append(np.array(result.counts, dtype=np.float64))  # [seeds, N, K]

    def metric(sums: np.ndarray) -> np.ndarray:
        scores: np.ndarray = task.metrics(sums)[task.metric]
        return scores

    resampled = resampled_scores(counts, metric=metric, resamples=resamples)
    of_kind = dict(zip(row.results, resampled, strict=True))
    means = {kind: fmean(result.scores) for kind, result in row.results.items()}
    if "vectors" not in means:
        return
    for kind in ("features", "both"):
        if kind not in means:
            continue
        gains = np.round(of_kind[kind] - of_kind["vectors"], _DECIMALS)
        points = means[kind] - means["vectors"]
        error = float(gains.std(ddof=1))
        row.gains[kind] = Gain(points, interval(gains), error, gains)


def _differences(row: Row, alike: Sequence[Row]) -> list[str]:
    """The facts in which a row differs from others of the same task, data set and
    split: its preset, and what differs within the preset.
    """
    preset = row.first.preset
    found: list[str] = []
    if len({other.first.preset for other in alike}) > 1:
        found.append(preset)
    others = [_facts(other) for other in alike if other.first.preset == preset]
    for name, shown in _facts(row).items():
        if len({each.get(name) for each in others}) > 1:
            found.append(shown)
    return found


def _facts(row: Row) -> dict[str, str]:
    """All that is known of a row, by name, as it is shown where others differ in it."""
    first = row.first
    facts = {}
    for split, files in first.data.items():
        shown = []
        fingerprints = first.fingerprints[split]
        for (file, count), key in zip(files.items(), fingerprints, strict=True):
            shown.append(f"{Path(file).name} ({count:,}, {key[:_SHORT]})")
        facts[split] = f"{split} {' + '.join(shown)}"
    for name, value in first.reader.items():
        facts[f"reader.{name}"] = f"{name} {value}"
    if row.word_vectors != NONE:
        facts["vectors"] = row.word_vectors
    for name, value in without_state_settings(first.settings).items():
        facts[f"settings.{name}"] = f"{name} {value}"
    share = 100 * first.settings["train_fraction"]
    facts["settings.train_fraction"] = f"{share:.4g} % of train"
    return facts
