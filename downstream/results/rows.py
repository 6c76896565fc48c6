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

from downstream.inputs.options import SEPARATOR
from downstream.results.bootstrap import interval, resampled_scores
from downstream.results.records import (
    Result,
    encoder_identity,
    read_results,
    without_state_settings,
)

Tasks = Mapping[str, Callable[[], Any]]  # name → the function that loads the task

# task → the gain of ELMo-C over fastText alone in Li et al. (2019)
PAPER = {"snli": 1.1, "coref": 4.0, "sst5": 2.5, "ner": 1.3, "srl": 2.2}
RESAMPLES = 10_000
NONE = "–"


@dataclass(frozen=True)
class Gain:
    """How far the mean is above that of word vectors alone, in points, and how sure
    this is.

    error      standard deviation over the resamples
    resampled  in each resample, float64 [R]; rows with as many items have the same
    draws of them
    """

    points: float
    interval: tuple[float, float]
    error: float
    resampled: np.ndarray

    def __str__(self) -> str:
        numbers = (self.points, *self.interval)
        points, low, high = (
            f"{round(number, 2) + 0.0:+.2f}" for number in numbers
        )  # adding 0.0 makes 0 of -0
        return f"{points} [{low}, {high}]"


@dataclass
class Row:
    """One line of the table: kind of inputs → result, gain over word vectors alone.

    dataset  data set and split, and in what the row differs from others on them:
    `wnut17 dev, hidden_size 100` encoder  its name, and the word vectors' name; "–"
    without
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


def compared_rows(
    paths: Sequence[Path], tasks: Tasks, *, resamples: int = RESAMPLES
) -> list[Row]:
    """The rows of the table of these results; raises as `read_results` does.

    Rows stand in the order of the tasks; within a task rows of one data set together,
    less training data first.
    """
    results = read_results(paths)
    encoders = _encoder_names(results)
    vectors = _vectors_names(results)
    rows = _arrange(results)
    places = [result.place for result in results]
    rows.sort(
        key=lambda row: (
            places.index(row.first.place),
            row.first.settings["train_fraction"],
        )
    )
    rows.sort(key=lambda row: list(tasks).index(row.first.task))
    for row in rows:
        _compare(row, tasks[row.first.task](), resamples)
        with_vectors = row.results.get("both", row.results.get("vectors"))
        row.encoder = (
            encoders[str(row.with_encoder.encoder)] if row.with_encoder else NONE
        )
        row.word_vectors = (
            vectors[str(with_vectors.word_vectors)] if with_vectors else NONE
        )
    for row in rows:
        differences = _differences(
            row, [other for other in rows if other.first.place == row.first.place]
        )
        row.dataset = ", ".join(
            [f"{row.first.dataset} {row.first.split}", *differences]
        )
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
        known = {
            (result.inputs, result.encoder, result.word_vectors): result
            for result in group
        }
        tables = [result.word_vectors for result in group if result.inputs == "vectors"]
        pairs = [
            (result.encoder, result.word_vectors)
            for result in group
            if result.inputs == "both"
        ]
        with_both = [encoder for encoder, _ in pairs]
        for result in group:
            if result.inputs == "features" and result.encoder not in with_both:
                pairs += [(result.encoder, table) for table in tables or [None]]
        with_encoder = [table for _, table in pairs]
        pairs += [(None, table) for table in tables if table not in with_encoder]
        for encoder, table in dict.fromkeys(pairs):
            keys = (
                ("vectors", None, table),
                ("features", encoder, None),
                ("both", encoder, table),
            )
            rows.append(Row({key[0]: known[key] for key in keys if key in known}))
    return rows


def _compare(row: Row, task: Any, resamples: int) -> None:
    """Give the row its gains."""
    counts = [result.counts for result in row.results.values()]
    resampled = resampled_scores(
        counts, metric=lambda sums: task.metrics(sums)[task.metric], resamples=resamples
    )
    of_kind = dict(zip(row.results, resampled, strict=True))
    means = {kind: fmean(result.scores) for kind, result in row.results.items()}
    for kind in ("features", "both") if "vectors" in means else ():
        if kind in means:
            differences = np.round(
                of_kind[kind] - of_kind["vectors"], 9
            )  # equal systems differ by rounding errors
            points = means[kind] - means["vectors"]
            error = float(differences.std(ddof=1))
            row.gains[kind] = Gain(points, interval(differences), error, differences)


def _encoder_names(results: Sequence[Result]) -> dict[str, str]:
    """Identity of each encoder → a name that no other one has.

    It names the directory or file that its layer states are from, and how a probe is
    given them. Encoders of one name are told apart by their weights and the options of
    the dump.
    """
    names = {}
    dumps = {}
    for result in results:
        if result.features is not None:
            features = result.features
            path = Path(str(features.get("directory", features.get("file"))))
            name = (
                path.parent.name
                if path.name == "model"
                else path.name
                if "directory" in features
                else path.stem
            )
            settings = "".join(
                f" {name} {value}" for name, value in result.state_settings.items()
            )
            names[str(result.encoder)] = name + settings
            fingerprint = str(features.get("model", ""))[:8]
            options = features | {"layers": ",".join(features.get("layers", []))}
            told = [
                f"{name} {options[name]}"
                for name in ("layers", "carry_state", "pooling")
                if options.get(name)
            ]
            dumps[str(result.encoder)] = " ".join(
                [fingerprint or encoder_identity(features), *told]
            )
    return _told_apart(names, dumps)


def _vectors_names(results: Sequence[Result]) -> dict[str, str]:
    """Fingerprint of word vectors → the names of their files."""
    names = {}
    for result in results:
        if result.vectors is not None:
            origins = str(result.vectors["origin"]).split(SEPARATOR)
            names[str(result.vectors["fingerprint"])] = SEPARATOR.join(
                Path(each).name for each in origins
            )
    return _told_apart(names, {identity: identity[:8] for identity in names})


def _told_apart(names: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The names, equal ones with more behind them."""
    taken = list(names.values())
    return {
        identity: f"{name} {more[identity]}" if taken.count(name) > 1 else name
        for identity, name in names.items()
    }


def _differences(row: Row, alike: Sequence[Row]) -> list[str]:
    """In what a row differs from others of the same task, data set and split: in its
    preset, or within it.
    """
    presets = {other.first.preset for other in alike}
    preset = row.first.preset
    others = [_facts(other) for other in alike if other.first.preset == preset]
    parts = [preset] if len(presets) > 1 else []
    return parts + [
        shown
        for name, shown in _facts(row).items()
        if len({each.get(name) for each in others}) > 1
    ]


def _facts(row: Row) -> dict[str, str]:
    """What is known of a row, by name, as it is shown where others differ in it."""
    first = row.first
    facts = {}
    for split, files in first.data.items():
        named = zip(files.items(), first.fingerprints[split], strict=True)
        shown = [
            f"{Path(file).name} ({count:,}, {key[:6]})" for (file, count), key in named
        ]
        facts[split] = f"{split} {' + '.join(shown)}"
    facts |= {
        f"reader.{name}": f"{name} {value}" for name, value in first.reader.items()
    }
    facts |= {"vectors": row.word_vectors} if row.word_vectors != NONE else {}
    facts |= {
        f"settings.{name}": f"{name} {each}"
        for name, each in without_state_settings(first.settings).items()
    }
    return facts | {
        "settings.train_fraction": f"{100 * first.settings['train_fraction']:.4g} % of train"
    }
