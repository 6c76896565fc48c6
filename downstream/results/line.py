"""A line of results: what does a run record of its probes?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from typing import Any, Literal

from downstream.results.records import mean_and_deviation


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
    inputs: Literal["vectors", "features", "model", "both"]
    metric: str
    item: str
    split: str
    data: dict[str, dict[str, int]]
    fingerprints: dict[str, list[str]]
    reader: dict[str, Any]
    settings: dict[str, Any]
    preset: str
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
    def is_of_one_seed(self) -> bool:
        """Whether each list has one element."""
        lists = [each for each in vars(self).values() if isinstance(each, list)]
        lists += self.figures.values()
        return all(len(each) == 1 for each in lists)

    def as_json(self) -> dict[str, Any]:
        """The object of a line of a results file, with mean and deviation."""
        mean, deviation = mean_and_deviation(self.scores)
        return {**asdict(self), "mean": mean, "deviation": deviation}


def joined(lines: Sequence[ResultLine]) -> ResultLine:
    """One line with the seeds of several, which agree in all but their lists."""
    values = asdict(lines[0])
    for each in fields(ResultLine):
        if isinstance(values[each.name], list):
            parts = [getattr(line, each.name) for line in lines]
            values[each.name] = list(chain.from_iterable(parts))
    for name in lines[0].figures:
        values["figures"][name] = [line.figures[name][0] for line in lines]
    return ResultLine(**values)
