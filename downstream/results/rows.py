"""Rows of the table of results: which results are compared, how sure are their gains, and what are they called?

A row holds the results of one task and one set of data that differ in their inputs alone. Rows of different encoders
share the baseline, word vectors alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from downstream.inputs.settings import SEPARATOR
from downstream.results.bootstrap import Interval, interval, p_value, resampled_scores
from downstream.results.records import (
    Result,
    encoder_identity,
    format_score,
    layer_names,
    mean_and_deviation,
    percent,
    read_results,
    without_state_settings,
)

Tasks = Mapping[str, Callable[[], Any]]  # name → the function that loads the task

# task → the gain of ELMo-C over fastText alone in Li et al. (2019)
PAPER = {"snli": 1.1, "coref": 4.0, "sst5": 2.5, "ner": 1.3, "srl": 2.2}
RESAMPLES = 10_000
NONE = "–"


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
    """The difference of the mean to that of word vectors alone, in points, and how sure it is.

    p_value    one-sided: of no gain
    error      standard deviation over the resamples
    resampled  in each resample, float64 [R]; rows with as many items have the same draws of them
    """

    points: float
    interval: Interval
    p_value: float
    error: float
    resampled: np.ndarray

    def __str__(self) -> str:
        points, low, high = (f"{round(number, 2) + 0.0:+.2f}" for number in (self.points, *astuple(self.interval)))
        return f"{points} [{low}, {high}]"  # adding 0.0 makes 0 of -0


@dataclass(frozen=True)
class Row:
    """One line of the table: kind of inputs → result, score, and gain over word vectors alone.

    dataset  data set and split, and in what the row differs from others on them: `wnut17 dev, hidden_size 100`
    encoder  its name, and that of the word vectors; "–" without
    """

    results: Mapping[str, Result]
    scores: Mapping[str, Score]
    gains: Mapping[str, Gain]
    dataset: str
    encoder: str
    word_vectors: str

    @property
    def first(self) -> Result:
        """One of the results, for what they have in common."""
        return next(iter(self.results.values()))

    @property
    def with_encoder(self) -> Result | None:
        """A result that names the encoder."""
        return self.results.get("both", self.results.get("features"))


def compared_rows(paths: Sequence[Path], tasks: Tasks, *, resamples: int = RESAMPLES) -> list[Row]:
    """The rows of the table of these results; raises as `read_results` does.

    Rows stand in the order of the tasks; within a task those of one data set together, less training data first.
    """
    results = read_results(paths)
    encoders, vectors = _encoder_names(results), _vectors_names(results)
    groups = _arrange(results)
    firsts = [next(iter(group.values())) for group in groups]
    places = [first.place for first in firsts]
    order = [
        (list(tasks).index(first.task), places.index(first.place), first.settings["train_fraction"]) for first in firsts
    ]
    rows = []
    for at in sorted(range(len(groups)), key=order.__getitem__):
        group, first = groups[at], firsts[at]
        alike = [other for other, place in zip(groups, places, strict=True) if place == first.place]
        with_encoder, with_vectors = (group.get("both", group.get(kind)) for kind in ("features", "vectors"))
        rows.append(
            Row(
                group,
                *_compare(group, tasks[first.task](), resamples),
                dataset=", ".join([f"{first.dataset} {first.split}", *_differences(group, alike, vectors)]),
                encoder=encoders[str(with_encoder.encoder)] if with_encoder else NONE,
                word_vectors=vectors[str(with_vectors.word_vectors)] if with_vectors else NONE,
            )
        )
    return rows


def _arrange(results: Sequence[Result]) -> list[dict[str, Result]]:
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
        tables = [result.word_vectors for result in group if result.inputs == "vectors"]
        pairs = [(result.encoder, result.word_vectors) for result in group if result.inputs == "both"]
        with_both = [encoder for encoder, _ in pairs]
        for result in group:
            if result.inputs == "features" and result.encoder not in with_both:
                pairs += [(result.encoder, table) for table in tables or [None]]
        with_encoder = [table for _, table in pairs]
        pairs += [(None, table) for table in tables if table not in with_encoder]
        for encoder, table in dict.fromkeys(pairs):
            keys = (("vectors", None, table), ("features", encoder, None), ("both", encoder, table))
            rows.append({key[0]: known[key] for key in keys if key in known})
    return rows


def _compare(results: Mapping[str, Result], task: Any, resamples: int) -> tuple[dict[str, Score], dict[str, Gain]]:
    """Scores and gains of a row, by kind of inputs."""
    counts = [result.counts for result in results.values()]
    resampled = resampled_scores(counts, metric=lambda sums: task.metrics(sums)[task.metric], resamples=resamples)
    of_kind = dict(zip(results, resampled, strict=True))
    scores = {
        kind: Score(*mean_and_deviation(result.scores), interval(of_kind[kind])) for kind, result in results.items()
    }
    gains = {}
    for kind in ("features", "both") if "vectors" in results else ():
        if kind in results:
            differences = np.round(of_kind[kind] - of_kind["vectors"], 9)  # equal systems differ by rounding errors
            points, error = scores[kind].mean - scores["vectors"].mean, float(differences.std(ddof=1))
            gains[kind] = Gain(points, interval(differences), p_value(differences), error, differences)
    return scores, gains


def _encoder_names(results: Sequence[Result]) -> dict[str, str]:
    """Identity of each encoder → a name that no other one has.

    It is that of the directory or file that its layer states are from, and how a probe is given them. Encoders of one
    name are told apart by their weights and the options of the dump.
    """
    names, dumps = {}, {}
    for result in results:
        if result.features is not None and result.encoder not in names:
            features, identity = result.features, str(result.encoder)
            path = Path(str(features.get("directory", features.get("file"))))
            name = path.parent.name if path.name == "model" else path.name if "directory" in features else path.stem
            names[identity] = name + "".join(f" {name} {value}" for name, value in result.state_settings.items())
            fingerprint = str(features.get("model_fingerprint", features.get("model", "")))[:8]
            options = features | {"layers": ",".join(layer_names(features))}
            told = [f"{name} {options[name]}" for name in ("layers", "carry_state", "pooling") if options.get(name)]
            dumps[identity] = " ".join([fingerprint or encoder_identity(features), *told])
    return _told_apart(names, dumps)


def _vectors_names(results: Sequence[Result]) -> dict[str, str]:
    """Fingerprint of word vectors → the names of their files."""
    origins = {str(each.word_vectors): str(each.vectors["origin"]) for each in results if each.vectors is not None}
    names = {
        identity: SEPARATOR.join(Path(each).name for each in origin.split(SEPARATOR))
        for identity, origin in origins.items()
    }
    return _told_apart(names, {identity: identity[:8] for identity in names})


def _told_apart(names: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The names, equal ones with more behind them."""
    taken = list(names.values())
    return {identity: f"{name} {more[identity]}" if taken.count(name) > 1 else name for identity, name in names.items()}


def _differences(
    row: Mapping[str, Result], alike: Sequence[Mapping[str, Result]], vectors: Mapping[str, str]
) -> list[str]:
    """In what a row differs from others of the same task, data set and split: in its preset, or from those of it."""
    presets = [next(iter(other.values())).preset for other in alike]
    own, preset = _facts(row, vectors), next(iter(row.values())).preset
    others = [_facts(other, vectors) for other, each in zip(alike, presets, strict=True) if each == preset]
    parts = [preset] if len(set(presets)) > 1 else []
    return parts + [shown for name, shown in own.items() if shown and len({each.get(name) for each in others}) > 1]


def _facts(row: Mapping[str, Result], vectors: Mapping[str, str]) -> dict[str, str]:
    """What is known of a row, by name, as it is shown where others differ in it."""
    first, with_vectors = next(iter(row.values())), row.get("both", row.get("vectors"))
    facts = {}
    for split, files in first.data.items():
        named = zip(files.items(), first.fingerprints[split], strict=True)
        facts[split] = (
            f"{split} {' + '.join(f'{Path(file).name} ({count:,}, {key[:6]})' for (file, count), key in named)}"
        )
    facts |= {f"reader.{name}": f"{name} {value}" for name, value in first.reader.items()}
    facts["vectors"] = vectors[str(with_vectors.word_vectors)] if with_vectors else ""
    facts |= {f"settings.{name}": f"{name} {each}" for name, each in without_state_settings(first.settings).items()}
    facts["settings.train_fraction"] = f"{percent(first.settings['train_fraction'])} of train"
    return facts
