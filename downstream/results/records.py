"""Lines of results: what does a run of a probe record, and which runs belong together
when they are read again?
"""

import fcntl
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from downstream.inputs.mixing import AS_THEY_ARE
from downstream.printing import counted
from downstream.settings import SMALL_MIX_RATE
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines

Facts = dict[str, Any]

# settings of layer states belong to the encoder: rows that differ in them share the
# baseline, word vectors alone
STATE_SETTINGS: Facts = asdict(AS_THEY_ARE)


@dataclass(frozen=True, kw_only=True)
class Result:
    """The scores of one task, one set of data and one kind of inputs, with a run for
    each seed.

    data          split → file → number of sentences
    fingerprints  split → hashes of the contents of its files
    reader        options with which the files were read
    features      facts of the encoder; None where the inputs are word vectors alone
    vectors       facts of the word vectors; None where the inputs are features alone
    scores        the metric of each seed, in percent
    figures       all metrics of each seed
    counts        float64 [seeds, N, K]: what the metric counts in each of the N items
    of the reported split mixes         of each seed, weights of the scalar mix, which
    sum to 1, and its scale γ; None without layer states compared_as   equal for results
    of a suite that are compared, though each kind of inputs has settings of its own
    """

    task: str
    dataset: str
    inputs: str
    metric: str
    split: str
    item: str
    preset: str
    data: dict[str, dict[str, int]]
    fingerprints: dict[str, list[str]]
    reader: Facts
    settings: Facts
    features: Facts | None
    vectors: Facts | None
    seeds: list[int]
    scores: list[float]
    figures: dict[str, list[float]]
    items: int
    counts: np.ndarray
    seconds: list[float]
    mixes: list[list[float] | None]
    compared_as: str | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Task, data set and split."""
        return self.task, self.dataset, self.split

    @property
    def comparable(self) -> str:
        """Equal for results whose difference is due to their inputs alone: task, data,
        metric and settings agree.

        Files are compared by their contents, in their order, as runs may have found
        them in different folders.
        """
        settings = self.compared_as or without_state_settings(self.settings)
        return _identity(
            [*self.place, self.metric, self.fingerprints, self.reader, settings]
        )

    @property
    def state_settings(self) -> Facts:
        """The settings of layer states that differ from the preset's."""
        usual = STATE_SETTINGS | (
            {"mix_rate": SMALL_MIX_RATE} if self.preset == "small" else {}
        )
        return {
            name: self.settings[name]
            for name, value in usual.items()
            if self.settings[name] != value
        }

    @property
    def encoder(self) -> str | None:
        """Equal for layer states of the same model that are given to probes in the same
        way; None without any.
        """
        return (
            None
            if self.features is None
            else encoder_identity(self.features) + _identity(self.state_settings)
        )

    @property
    def word_vectors(self) -> str | None:
        """The fingerprint of the word vectors; None without any."""
        return None if self.vectors is None else str(self.vectors["fingerprint"])


def append_result(path: Path, record: Mapping[str, Any]) -> None:
    """Append one JSON line while the file is locked: several runs may share it."""
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_results(paths: Iterable[Path]) -> list[Result]:
    """The results of all lines of the files, in the order in which they come first.

    Lines that agree in task, data, settings and inputs are one result with the seeds of
    all of them. Where several have the same seed, the last one counts. Raises
    `InputError` with file and line for a line that cannot be read.
    """
    decoder = msgspec.json.Decoder(
        Result, dec_hook=lambda _, value: np.array(value, dtype=np.float64)
    )
    runs: dict[str, dict[int, tuple[Result, int]]] = {}
    for path in paths:
        for number, line in enumerate(read_lines(path), 1):
            with reading(f"{path}, line {number}"):
                result = decoder.decode(line)
                if (
                    result.inputs == "model"
                ):  # it computes the layer states that a file has
                    result = replace(result, inputs="features")
                key = _identity(
                    [
                        result.comparable,
                        result.inputs,
                        result.encoder,
                        result.word_vectors,
                    ]
                )
                runs.setdefault(key, {}).update(
                    (seed, (result, row)) for row, seed in enumerate(result.seeds)
                )
    if not runs:
        raise InputError(
            f"there are no results in {', '.join(map(str, paths))}: give files that --results wrote"
        )
    return [
        _pool([of_seeds[seed] for seed in sorted(of_seeds)])
        for of_seeds in runs.values()
    ]


def _pool(runs: Sequence[tuple[Result, int]]) -> Result:
    """One result of runs, which are rows of results that agree in all but their seeds."""
    result = runs[-1][0]
    names = ("seeds", "scores", "seconds", "mixes")
    columns: dict[str, Any] = {
        name: [getattr(each, name)[row] for each, row in runs] for name in names
    }
    counts = np.stack([each.counts[row] for each, row in runs])
    figures = {
        name: [each.figures[name][row] for each, row in runs] for name in result.figures
    }
    return replace(result, counts=counts, figures=figures, **columns)


def without_state_settings(settings: Mapping[str, Any]) -> Facts:
    """Settings without those of layer states, which may differ between compared
    results.
    """
    return {
        name: value for name, value in settings.items() if name not in STATE_SETTINGS
    }


def mean_and_deviation(scores: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation (n − 1) over seeds; a single seed has no
    deviation.
    """
    return statistics.fmean(scores), statistics.stdev(scores) if len(
        scores
    ) > 1 else None


def format_score(mean: float, deviation: float | None) -> str:
    """`52.31 ± 0.40`, or the mean alone."""
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"


def encoder_identity(features: Mapping[str, Any]) -> str:
    """Equal for what lines say about layer states of the same model; foreign files are
    known by path, size and time.
    """
    if "model" not in features:
        return " ".join(
            str(features[name])
            for name in ("file", "file_size", "file_time")
            if name in features
        )
    names = ("model", "word_vectors", "layers", "pooling")
    return _identity([*map(features.get, names), bool(features.get("carry_state"))])


def summary(records: Sequence[Mapping[str, Any]]) -> str:
    """The last lines that a run prints: one a kind of inputs, each with its gain over
    word vectors alone.

    A gain is that over word vectors with the same data and settings, since saved probes
    may have others.
    """
    first = records[0]
    lines = [f"{first['task']}: {first['metric']} on {first['split']}"]
    compared = [
        [each["fingerprints"], each["reader"], without_state_settings(each["settings"])]
        for each in records
    ]
    baselines = [row for row, each in enumerate(records) if each["inputs"] == "vectors"]
    for row, record in enumerate(records):
        line = f"  {record['inputs']:9} {format_score(record['mean'], record['deviation']):14}"
        line += f"  {counted(len(record['seeds']), 'seed'):8}"
        alike = [
            records[each]["mean"]
            for each in baselines
            if compared[each] == compared[row] and each != row
        ]
        lines.append(
            (
                line + (f"  gain {record['mean'] - alike[0]:+.2f}" if alike else "")
            ).rstrip()
        )
    return "\n".join(lines)


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
