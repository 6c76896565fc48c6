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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from downstream.results.bootstrap import interval, resampled_scores
from downstream.results.names import NONE, encoder_names, told_apart, vectors_names
from downstream.results.records import Result, read_results, without_state_settings
from downstream.tasks import TASKS, load_task
from elmoc.errors import reading

# Task → the gain of ELMo-C over fastText alone in Li et al. (2019, Table 2).
# A task without one is left out of the figure of merit.
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

    resampled: the gain in each resample, float64 [R]. Rows with the same number of
        items have the same draws of them.
    """

    points: float
    resampled: np.ndarray

    def __str__(self) -> str:
        numbers = [self.points, *interval(self.resampled)]
        # Adding 0.0 makes 0 of −0.
        points, low, high = [f"{round(each, 2) + 0.0:+.2f}" for each in numbers]
        return f"{points} [{low}, {high}]"


@dataclass
class Row:
    """One line of the table: kind of inputs → result, and its gain over word vectors
    alone.

    resampled: the score in each resample, float64 [R].
    encoder: its name; "–" without one.
    word_vectors: their name; "–" without any.
    dataset: data set and split, and the facts in which the row differs from others on
        them: `wnut17 dev, hidden_size 100`.
    """

    results: Mapping[str, Result]
    resampled: Mapping[str, np.ndarray]
    gains: Mapping[str, Gain]
    encoder: str
    word_vectors: str
    dataset: str = ""

    @property
    def first(self) -> Result:
        """One of the results, for what they have in common."""
        return next(iter(self.results.values()))

    @property
    def with_encoder(self) -> Result | None:
        """A result that names the encoder."""
        return self.results.get("both", self.results.get("features"))

    @property
    def mix(self) -> str:
        """The weights of the layers and the scale, means over seeds: `0.20 0.80 ×
        1.10`.
        """
        result = self.with_encoder
        mixes = [mix for mix in result.mixes if mix] if result else []
        # Column by column: layers in their order, and the scale last.
        means = [f"{fmean(values):.2f}" for values in zip(*mixes, strict=True)]
        return f"{' '.join(means[:-1])} × {means[-1]}" if means else NONE


def compared_rows(paths: Sequence[Path], *, resamples: int = RESAMPLES) -> list[Row]:
    """The rows of the table of these results.

    They stand in the order of the tasks; within a task rows of one data set stand
    together, less training data first.

    Raises:
        InputError: see `read_results`.
    """
    # Lines may be damaged in ways that show where they are pooled or compared.
    with reading(", ".join(map(str, paths))):
        results = read_results(paths)
        rows = _arrange(results, resamples)
        places = [result.place for result in results]
        rows.sort(
            key=lambda row: (
                list(TASKS).index(row.first.task),
                places.index(row.first.place),
                row.first.settings["train_fraction"],
            )
        )
        names = ["\t".join(row.first.place) for row in rows]
        # Within a preset, hyper-parameters tell rows apart.
        names = told_apart(names, [{"preset": row.first.preset} for row in rows])
        names = told_apart(names, [_facts(row) for row in rows])
        for row, name in zip(rows, names, strict=True):
            row.dataset = " ".join(name.split("\t")[1:])
    return rows


def _arrange(results: Sequence[Result], resamples: int) -> list[Row]:
    """The rows, in the order in which they come first, still without names of data.

    A row has one encoder and one table of word vectors (or lacks one of them). Word
    vectors alone stand in the rows of all encoders that they may be compared with, and
    features alone in the rows of all word vectors.
    """
    encoders = encoder_names(results)
    vectors = vectors_names(results)
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.comparable, []).append(result)
    rows = []
    for group in groups.values():
        known = {(each.inputs, each.encoder, each.word_vectors): each for each in group}
        for encoder, table in _pairs(group):
            keys: list[Any] = [
                ("vectors", None, table),
                ("features", encoder, None),
                ("both", encoder, table),
            ]
            found = {key[0]: known[key] for key in keys if key in known}
            resampled = _resampled(found, resamples)
            rows.append(
                Row(
                    results=found,
                    resampled=resampled,
                    # Over word vectors alone, where they were run.
                    gains={
                        kind: Gain(
                            result.mean - found["vectors"].mean,
                            np.round(resampled[kind] - resampled["vectors"], _DECIMALS),
                        )
                        for kind, result in found.items()
                        if kind != "vectors" and "vectors" in found
                    },
                    encoder=encoders.get(encoder, NONE),
                    word_vectors=vectors.get(table, NONE),
                )
            )
    return rows


def _pairs(group: Sequence[Result]) -> list[tuple[str | None, str | None]]:
    """The encoder and the word vectors of each row of comparable results."""
    both = [
        (each.encoder, each.word_vectors) for each in group if each.inputs == "both"
    ]
    features = [each.encoder for each in group if each.inputs == "features"]
    tables = [each.word_vectors for each in group if each.inputs == "vectors"]
    # Features alone stand beside both, where both were run.
    with_both = {encoder for encoder, _ in both}
    alone = [encoder for encoder in features if encoder not in with_both]
    pairs = both + list(product(alone, tables or [None]))
    with_encoder = {table for _, table in pairs}
    return pairs + [(None, table) for table in tables if table not in with_encoder]


def _resampled(results: Mapping[str, Result], resamples: int) -> dict[str, np.ndarray]:
    """The scores of each kind of inputs on the same draws of items, float64 [R]."""
    task = load_task(next(iter(results.values())).task)
    # [seeds, N, K] each.
    counts = [np.array(each.counts, dtype=np.float64) for each in results.values()]
    scores = resampled_scores(
        counts,
        metric=lambda sums: task.metrics(sums)[task.metric],
        resamples=resamples,
    )
    return dict(zip(results, scores, strict=True))


def _facts(row: Row) -> dict[str, str]:
    """All that is known of a row, as it is shown where others differ in it."""
    first = row.first
    facts = {}
    for split, files in first.data.items():
        fingerprints = first.fingerprints[split]
        shown = [
            f"{Path(file).name} ({count:,}, {key[:_SHORT]})"
            for (file, count), key in zip(files.items(), fingerprints, strict=True)
        ]
        facts[split] = f"{split} {' + '.join(shown)}"
    facts |= {name: f"{name} {value}" for name, value in first.reader.items()}
    if row.word_vectors != NONE:
        facts["vectors"] = row.word_vectors
    settings = without_state_settings(first.settings)
    facts |= {name: f"{name} {value}" for name, value in settings.items()}
    share = 100 * first.settings["train_fraction"]
    return facts | {"train_fraction": f"{share:.4g} % of train"}
