"""A line of results: what does a run record of its probes?"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar


@dataclass(frozen=True, kw_only=True)
class ResultLine:
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
    """

    task: str
    dataset: str
    inputs: Literal["vectors", "features", "both"]
    metric: str
    item: str
    split: str
    data: dict[str, dict[str, int]]
    fingerprints: dict[str, list[str]]
    reader: dict[str, Any]
    settings: dict[str, Any]
    preset: Literal["published", "small"]
    device: str
    threads: int
    features: dict[str, Any] | None
    vectors: dict[str, Any] | None
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
        return format_score(self.mean, self.deviation)

    def as_json(self) -> dict[str, Any]:
        """The object of a line of a results file, with mean and deviation."""
        return {**asdict(self), "mean": self.mean, "deviation": self.deviation}


AnyLine = TypeVar("AnyLine", bound=ResultLine)


def of_row(line: AnyLine, row: int) -> AnyLine:
    """A line of one seed, which is that of a row of each list."""
    changes: dict[str, Any] = {name: [each[row]] for name, each in _lists(line)}
    figures = {name: [each[row]] for name, each in line.figures.items()}
    return replace(line, figures=figures, **changes)


def joined(lines: Sequence[AnyLine]) -> AnyLine:
    """One line with the seeds of several of one seed, which agree in all but their
    lists; the last one has the facts.
    """
    # Where a seed was run again, facts such as paths are those of the later run.
    last = lines[-1]
    changes: dict[str, Any] = {"figures": {}}
    for name in last.figures:
        changes["figures"][name] = [line.figures[name][0] for line in lines]
    for name, _ in _lists(last):
        changes[name] = [getattr(line, name)[0] for line in lines]
    return replace(last, **changes)


def _lists(line: ResultLine) -> list[tuple[str, list[Any]]]:
    """The fields that have an element for each seed."""
    return [(name, each) for name, each in vars(line).items() if isinstance(each, list)]


def format_score(mean: float, deviation: float | None) -> str:
    """`52.31 ± 0.40`, or the mean alone."""
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"
