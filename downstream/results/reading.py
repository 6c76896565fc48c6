"""Results of probes: the lines that runs appended to their files, read again, the seeds of equal runs pooled."""

import json
import math
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from downstream.inputs.kinds import INPUT_KINDS
from downstream.results.records import encoder_identity, word_vectors_identity
from elmoc.errors import InputError
from elmoc.files.text import read_lines

COLUMNS_OF_INPUTS = ("vectors", "features", "both")
"""The kinds of inputs that are compared, in the order of the table. Lines of the kind `model` count as `features`: a
model computes the same layer states as are read from a file."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The scores of one task, one set of data and one kind of inputs, with a run for each seed.

    The fields are those of a line of results, with the same types; only `metrics` is called `figures` there, `counts`
    is a list there, and `origins` is added.
    """

    task: str
    dataset: str
    inputs: str
    """vectors, features or both."""
    metric: str
    split: str
    unit: str
    item: str
    preset: str
    data: dict[str, dict[str, int]]
    """Split → file → number of sentences."""
    fingerprints: dict[str, list[str]]
    """Split → the hashes of the contents of its files."""
    reader: dict[str, Any]
    """The options with which the files were read."""
    settings: dict[str, Any]
    features: dict[str, Any] | None
    """What is known of the encoder; None where the inputs are word vectors alone."""
    vectors: dict[str, Any] | None
    """What is known of the word vectors; None where the inputs are features alone."""
    seeds: list[int]
    scores: list[float]
    """The metric of each seed, in percent."""
    metrics: dict[str, list[float]]
    """All metrics of each seed."""
    items: int
    counts: Any
    """float64 [seeds, N, K]: what the metric counts in each of the N items of the test set."""
    seconds: list[float]
    """Of training."""
    examples_per_second: list[float]
    origins: list[str]
    """The file and the line of each seed."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Task, data set and split."""
        return self.task, self.dataset, self.split

    @property
    def comparable(self) -> str:
        """Equal for results whose difference is due to their inputs alone: task, data, metric and settings agree.

        Files are compared by their contents, in their order, as runs may have found them in different folders.
        """
        return _identity(
            [self.task, self.dataset, self.metric, self.split, self.fingerprints, self.reader, self.settings]
        )

    @property
    def encoder(self) -> str | None:
        """Equal for layer states of the same model; None without any. Foreign feature files are known by their name."""
        return None if self.features is None else encoder_identity(self.features)

    @property
    def word_vectors(self) -> str | None:
        """The fingerprint of the word vectors; None without any."""
        return None if self.vectors is None else word_vectors_identity(self.vectors)


def read_results(paths: Iterable[Path]) -> tuple[list[Result], list[str]]:
    """The results of all lines of the files, and notes on what was left out.

    Lines that agree in task, data, settings and inputs are one result with the seeds of all of them. Where several
    have the same seed, the last one counts. Raises `InputError` with file and line for what is no line of results.
    """
    pooled: dict[str, Result] = {}
    notes: list[str] = []
    for path in {path.resolve(): path for path in paths}.values():
        for number, line in enumerate(read_lines(path), 1):
            if line.strip():
                result = _parse_line(line, f"{path}, line {number}")
                key = _identity([result.comparable, result.inputs, result.encoder, result.word_vectors])
                pooled[key] = _pool([pooled[key], result] if key in pooled else [result], notes)
    if not pooled:
        raise InputError(
            f"there are no results in {', '.join(map(str, paths))}: `python -m downstream TASK … --results FILE.jsonl` "
            "writes some"
        )
    return list(pooled.values()), notes


def require_same_items(first: Result, other: Result) -> None:
    """Raise an `InputError` when results on the same data do not count the same things in the same number of items."""
    shapes = [result.counts.shape[1:] for result in (other, first)]
    if shapes[0] != shapes[1]:
        has, had = (f"{items:,} items with {columns} counts each" for items, columns in shapes)
        raise InputError(
            f"{other.origins[0]} has {has}, but {first.origins[0]}, which names the same data, has {had}: the data or "
            "the code changed in between, run one of them again and remove its line"
        )


def _pool(results: Sequence[Result], notes: list[str]) -> Result:
    """The last result with the runs of all of them, in the order of the seeds; adds a note for a run left out."""
    runs: dict[int, tuple[Result, int]] = {}
    for result in results:
        require_same_items(results[0], result)
        for row, seed in enumerate(result.seeds):
            if seed in runs:
                old, at = runs[seed]
                notes.append(
                    f"{result.task} {result.dataset}, {result.inputs}, seed {seed}: {result.origins[row]} replaces "
                    f"{old.origins[at]} ({result.scores[row]:.2f} for {old.scores[at]:.2f})"
                )
            runs[seed] = (result, row)
    chosen = [runs[seed] for seed in sorted(runs)]
    columns: dict[str, Any] = {
        name: [getattr(result, name)[row] for result, row in chosen]
        for name in ("seeds", "scores", "counts", "seconds", "examples_per_second", "origins")
    }
    columns["counts"] = np.stack(columns["counts"])
    columns["metrics"] = {
        name: [result.metrics[name][row] for result, row in chosen]
        for name in results[-1].metrics
        if all(name in result.metrics for result, _ in chosen)  # another version may have had others
    }
    return replace(results[-1], **columns)


def _parse_line(line: str, origin: str) -> Result:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{origin} is not a whole line of results ({error.msg} at character {error.pos + 1}): remove that line"
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"{origin} is not a line of results: give a file that `--results` of a probe wrote")
    known = {"figures" if name == "metrics" else name: kind for name, kind in get_type_hints(Result).items()}
    del known["origins"]
    for name, kind in known.items():
        _require(name in record, origin, name, "is missing, as if another program or version had written the line")
        expected = "a name" if kind is str else kind.__name__ if kind is int else str(kind).replace("typing.", "")
        _require(_has_type(record[name], kind), origin, name, f"is {reprlib.repr(record[name])}, not {expected}")
    fields = {name: record[name] for name in known if name != "figures"} | {"metrics": record["figures"]}
    fields["counts"] = _check_values(record, origin)
    fields["inputs"] = "features" if record["inputs"] == "model" else record["inputs"]
    return Result(**fields, origins=[origin] * len(record["seeds"]))


def _check_values(record: dict[str, Any], origin: str) -> np.ndarray:
    """Check what the types of the fields leave open; returns the counts, float64 [seeds, N, K]."""
    inputs, items, seeds = record["inputs"], record["items"], record["seeds"]
    _require(inputs in INPUT_KINDS, origin, "inputs", f"is {inputs}, not one of {', '.join(INPUT_KINDS)}")
    kind = INPUT_KINDS[inputs]
    for name, read in (("vectors", kind.words), ("features", kind.states)):
        state = "null" if record[name] is None else "not null"
        _require((record[name] is not None) == read, origin, name, f'is {state}, but the inputs are "{inputs}"')
    vectors = record["vectors"]
    _require(vectors is None or "fingerprint" in vectors, origin, "vectors", "has no fingerprint")
    _require(record["split"] in record["data"], origin, "data", f"has no {record['split']}")
    _require(items > 0, origin, "items", f"is {items}, not a number of items")
    _require(len(set(seeds)) == len(seeds) > 0, origin, "seeds", f"is {seeds}, not one or more different numbers")
    per_seed = {name: record[name] for name in ("scores", "seconds", "examples_per_second")} | record["figures"]
    for name, values in per_seed.items():
        _require(len(values) == len(seeds), origin, name, f"has {len(values)} numbers for {len(seeds)} seeds")
    try:
        counts = np.array(record["counts"], dtype=np.float64)
    except (TypeError, ValueError):
        counts = np.empty(0)
    whole = counts.ndim == 3 and counts.shape[:2] == (len(seeds), items) and bool(np.isfinite(counts).all())
    problem = f"does not hold the same number of numbers for each of {items:,} items and each of {len(seeds)} seeds"
    _require(whole, origin, "counts", problem)
    return counts


def _require(condition: bool, origin: str, name: str, problem: str) -> None:
    if not condition:
        raise InputError(f'{origin}: the field "{name}" {problem}: run the probe again and remove that line')


def _has_type(value: Any, kind: Any) -> bool:
    """Whether a value of JSON has a type; floats are finite numbers, and texts are not empty."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return any(_has_type(value, each) for each in arguments)
    if origin is list:
        return isinstance(value, list) and all(_has_type(each, arguments[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(_has_type(each, arguments[1]) for each in value.values())
    if kind is float:
        return type(value) in (int, float) and abs(value) < math.inf
    return kind is Any or (type(value) is kind and value != "")


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
