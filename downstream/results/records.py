"""Lines of results: what does a run of a probe record, and which runs belong together
when they are read again?
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from downstream.inputs.options import AS_THEY_ARE
from downstream.settings import SMALL_INPUTS
from elmoc.errors import InputError, reading
from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_path, locked

# Seconds to wait for other runs that append a line, which takes a moment.
LOCK_SECONDS = 60.0
Facts = dict[str, Any]
# Facts of a feature file in which layer states of one model, dumped in one way, agree.
OF_MODEL = ("model", "settings", "word_vectors", "layers", "pooling", "precision")
# A file of another tool does not say all that its states depend on.
OF_FILE = ("file", "file_size", "file_time")
# Settings of layer states belong to the encoder: rows that differ in them share the
# baseline, word vectors alone.
STATE_SETTINGS: Facts = asdict(AS_THEY_ARE)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run records of the probes of one kind of inputs, which differ in their
    seeds. Lists have an element for each seed.

    task: its name.
    dataset: the name of the data.
    inputs: the name of the kind of inputs.
    metric: the name of the reported metric.
    item: the plural of what is scored, such as sentences.
    split: the name of the reported split.
    data: split → file → number of sentences.
    fingerprints: split → hashes of the contents of its files.
    reader: options with which the files were read.
    settings: hyper-parameters.
    preset: published or small.
    device: where the probes were trained, or scored.
    threads: of PyTorch.
    features: facts of the encoder; None where the inputs are word vectors alone.
    vectors: facts of the word vectors; None where the inputs are layer states alone.
    elmoc: the version of this package.
    seeds: of the probes.
    scores: the reported metric, in percent.
    figures: all metrics by name, in percent.
    mixes: the weights of the scalar mix, which sum to 1, and its scale γ; None without
        layer states.
    items: how many items the reported split has.
    counts: the numbers that the metric is made of, for each item.
    dev_scores: the best score of the development split.
    best_epochs: the epoch of this score, from 1.
    epochs: how many there were.
    curves: of each epoch the mean loss, the development score, and the seconds of its
        updates.
    seconds: of the whole training, development scores included.
    examples_per_second: of training alone.
    compared_as: of a suite: equal for results that are compared, though each kind of
        inputs has settings of its own.
    """

    task: str
    dataset: str
    inputs: Literal["vectors", "features", "both"]
    metric: str
    item: str
    split: str
    data: dict[str, dict[str, int]]
    fingerprints: dict[str, list[str]]
    reader: Facts
    settings: Facts
    preset: Literal["published", "small"]
    device: str
    threads: int
    features: Facts | None
    vectors: Facts | None
    elmoc: str
    seeds: list[int]
    scores: list[float]
    figures: dict[str, list[float]]
    mixes: list[list[float] | None]
    items: int
    counts: list[list[list[int | float]]]
    dev_scores: list[float]
    best_epochs: list[int]
    epochs: list[int]
    curves: list[list[dict[str, float]]]
    seconds: list[float]
    examples_per_second: list[float]
    compared_as: str | None = None

    @property
    def mean(self) -> float:
        """The mean score over seeds."""
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds (n − 1); None for a single one."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else None

    @property
    def score(self) -> str:
        """`52.31 ± 0.40`, or the mean alone."""
        shown = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:.2f}{shown}"

    def as_json(self) -> Facts:
        """The object of a line of a results file, with mean and deviation."""
        return {**asdict(self), "mean": self.mean, "deviation": self.deviation}

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
        # Suites tune settings for each kind of inputs.
        settings = self.compared_as or without_state_settings(self.settings)
        facts = [self.place, self.metric, self.fingerprints, self.reader, settings]
        return _identity(facts)

    @property
    def state_settings(self) -> Facts:
        """The settings of layer states that differ from the preset's."""
        usual = dict(STATE_SETTINGS)
        if self.preset == "small":
            usual |= {name: SMALL_INPUTS.get(name, usual[name]) for name in usual}
        return {
            name: self.settings[name]
            for name in usual
            if self.settings[name] != usual[name]
        }

    @property
    def encoder(self) -> str | None:
        """Equal for layer states of the same model that are given to probes in the same
        way; None without any.
        """
        if self.features is None:
            return None
        return encoder_identity(self.features) + _identity(self.state_settings)

    @property
    def word_vectors(self) -> str | None:
        """The fingerprint of the word vectors; None without any."""
        return None if self.vectors is None else str(self.vectors["fingerprint"])


def of_row(line: Result, row: int) -> Result:
    """A line of one seed, which is that of a row of each list."""
    changes: Facts = {name: [each[row]] for name, each in _lists(line)}
    figures = {name: [each[row]] for name, each in line.figures.items()}
    return replace(line, figures=figures, **changes)


def joined(lines: Sequence[Result]) -> Result:
    """One line with the seeds of several of one seed, which agree in all but their
    lists; the last one has the facts.
    """
    # Where a seed was run again, facts such as paths are those of the later run.
    last = lines[-1]
    figures = {name: [line.figures[name][0] for line in lines] for name in last.figures}
    lists: Facts = {
        name: [getattr(line, name)[0] for line in lines] for name, _ in _lists(last)
    }
    return replace(last, figures=figures, **lists)


def _lists(line: Result) -> list[tuple[str, list[Any]]]:
    """The fields that have an element for each seed."""
    return [(name, each) for name, each in vars(line).items() if isinstance(each, list)]


def append_result(path: Path, record: Mapping[str, Any]) -> None:
    """Append one JSON line, or nothing, while the file is locked: several runs may
    share it.
    """
    text = json.dumps(record, ensure_ascii=False) + "\n"
    with (
        locked(path, seconds=LOCK_SECONDS),
        atomic_path(path, checksum=True) as partial,
        open(partial, "wb") as file,
    ):
        if path.exists():
            file.write(path.read_bytes())
        # Names of files that are not UTF-8 become escapes of JSON.
        file.write(text.encode("utf-8", "backslashreplace"))


def read_results(paths: Sequence[Path]) -> list[Result]:
    """The results of all lines of the files, in the order in which they come first.

    Lines that agree in task, data, settings and inputs are one result with the seeds of
    all of them. Where several have the same seed, the last one counts.

    Raises:
        InputError: a line that cannot be read, or files without lines.
    """
    # What runs share → seed → the result of the run.
    runs: dict[str, dict[int, Result]] = {}
    for path in paths:
        for number, line in enumerate(read_lines(path), 1):
            with reading(f"{path}, line {number}"):
                result = msgspec.convert(json.loads(line), Result)
                own = [result.inputs, result.encoder, result.word_vectors]
                key = _identity([result.comparable, own])
                for row, seed in enumerate(result.seeds):
                    runs.setdefault(key, {})[seed] = of_row(result, row)
    files = ", ".join(map(str, paths))
    if not runs:
        raise InputError(
            f"there are no results in {files}: give files that --results wrote"
        )
    # A damaged line may lack a figure that others of its kind have.
    with reading(files):
        # In the order of the seeds.
        alike = [dict(sorted(of_seeds.items())) for of_seeds in runs.values()]
        return [joined(list(of_seeds.values())) for of_seeds in alike]


def without_state_settings(settings: Mapping[str, Any]) -> Facts:
    """Settings without those of layer states, which may differ between compared
    results.
    """
    return {name: settings[name] for name in settings if name not in STATE_SETTINGS}


def encoder_facts(features: Mapping[str, Any]) -> Facts:
    """Facts that tell layer states from others, of what lines say about them."""
    # Files of other tools may name a model, too.
    names = OF_MODEL if "word_vectors" in features else OF_FILE
    # Of options that are off, some files say nothing.
    return {name: features[name] for name in names if features.get(name)}


def encoder_identity(features: Mapping[str, Any]) -> str:
    """Equal for what lines say about layer states of the same model."""
    return _identity(encoder_facts(features))


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
