"""What do the lines of results of many runs say together?

A run appends one line of JSON for each kind of inputs. Here they are read again, and the seeds of lines that differ in
nothing else are pooled.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from downstream.inputs.identity import encoder_identity, word_vectors_identity
from elmoc.errors import InputError
from elmoc.files import read_lines

KINDS = ("vectors", "features", "both")
"""The kinds of inputs that are compared. Lines of the kind `model` count as `features`: a model computes the same layer
states as are read from a file."""


@dataclass(frozen=True)
class SeedRun:
    """The run of one seed, and the line that tells of it."""

    seed: int
    score: float
    figures: dict[str, float]
    counts: np.ndarray
    """float64 [N, K]: what the metric counts in the items of the test set."""
    seconds: float
    """Of training."""
    examples_per_second: float
    origin: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """What is known of one task, one set of data and one kind of inputs: a run for each seed."""

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
    """The number of sentences of each file of each split."""
    fingerprints: dict[str, list[str]]
    """The hashes of their contents."""
    reader: dict[str, Any]
    """The options with which they were read."""
    settings: dict[str, Any]
    features: dict[str, Any] | None
    vectors: dict[str, Any] | None
    runs: tuple[SeedRun, ...]
    """In the order of the seeds."""

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

    @property
    def counts(self) -> np.ndarray:
        """float64 [seeds, N, K]."""
        return np.stack([run.counts for run in self.runs])


def read_results(paths: Iterable[Path]) -> tuple[list[Result], list[str]]:
    """The results of all lines of the files, and notes on what was left out.

    Lines that agree in task, data, settings and inputs are one result with the seeds of all of them. Where several
    have the same seed, the last one counts. Raises `InputError` with file and line for what is no line of results.
    """
    pooled: dict[str, Result] = {}
    notes: list[str] = []
    for path in {path.resolve(): path for path in paths}.values():
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            result = _parse_line(line, f"{path}, line {number}")
            key = _identity([result.comparable, result.inputs, result.encoder, result.word_vectors])
            pooled[key] = _pool(pooled[key], result, notes) if key in pooled else result
    if not pooled:
        raise InputError(
            f"there are no results in {', '.join(map(str, paths))}: `python -m downstream TASK … --results FILE.jsonl` "
            "writes some"
        )
    return list(pooled.values()), notes


def _pool(known: Result, new: Result, notes: list[str]) -> Result:
    require_same_items(known, new)
    runs = {run.seed: run for run in known.runs}
    for run in new.runs:
        if run.seed in runs:
            notes.append(
                f"{new.task} {new.dataset}, {new.inputs}, seed {run.seed}: {run.origin} replaces "
                f"{runs[run.seed].origin} ({run.score:.2f} for {runs[run.seed].score:.2f})"
            )
        runs[run.seed] = run
    return Result(**{**vars(new), "runs": tuple(runs[seed] for seed in sorted(runs))})


def require_same_items(first: Result, other: Result) -> None:
    """Raise an `InputError` when results on the same data do not count the same things in the same number of items."""
    shapes = [result.counts.shape[1:] for result in (other, first)]
    if shapes[0] != shapes[1]:
        has, had = (f"{items:,} items with {columns} counts each" for items, columns in shapes)
        raise InputError(
            f"{other.runs[0].origin} has {has}, but {first.runs[0].origin}, which names the same data, has {had}: the "
            "data or the code changed in between, run one of them again and remove its line"
        )


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


_Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _is_data(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(files, dict) and all(isinstance(sentences, int) for sentences in files.values())
        for files in value.values()
    )


def _is_fingerprints(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(hashes, list) for hashes in value.values())


def _is_origin(value: Any) -> bool:
    return value is None or isinstance(value, dict)


_FIELDS: dict[str, tuple[_Check, str]] = {
    "task": (_is_text, "a name"),
    "dataset": (_is_text, "a name"),
    "inputs": (lambda value: value in (*KINDS, "model"), f"one of {', '.join(KINDS)} and model"),
    "metric": (_is_text, "a name"),
    "split": (_is_text, "a name"),
    "unit": (_is_text, "a name"),
    "item": (_is_text, "a name"),
    "preset": (_is_text, "a name"),
    "data": (_is_data, "the number of sentences of each file of each split"),
    "fingerprints": (_is_fingerprints, "the hashes of the files of each split"),
    "reader": (lambda value: isinstance(value, dict), "an object"),
    "settings": (lambda value: isinstance(value, dict), "an object"),
    "features": (_is_origin, "an object or null"),
    "vectors": (lambda value: value is None or (isinstance(value, dict) and "fingerprint" in value), "an object with "
                "a fingerprint, or null"),
    "seeds": (lambda value: isinstance(value, list) and len(value) > 0 and all(type(seed) is int for seed in value)
              and len(set(value)) == len(value), "a list of different whole numbers"),
    "scores": (_is_numbers, "a list of numbers"),
    "figures": (lambda value: isinstance(value, dict) and all(map(_is_numbers, value.values())), "lists of numbers"),
    "items": (lambda value: type(value) is int and value > 0, "a number of items"),
    "counts": (lambda value: isinstance(value, list), "a list"),
    "seconds": (_is_numbers, "a list of numbers"),
    "examples_per_second": (_is_numbers, "a list of numbers"),
}  # fmt: skip
"""The fields of a line of results that a table needs: what is right there, and how to say so."""


def _parse_line(line: str, origin: str) -> Result:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{origin} is not a whole line of results ({error.msg} at character {error.pos + 1}): remove that line"
        ) from None
    if not isinstance(record, dict):
        raise InputError(f"{origin} is not a line of results: give a file that `--results` of a probe wrote")
    for name, (check, expected) in _FIELDS.items():
        if name not in record:
            raise InputError(
                f'{origin} has no field "{name}", as if another program or version had written it: run the probe '
                "again, or remove that line"
            )
        if not check(record[name]):
            raise InputError(
                f'{origin}: the field "{name}" is not {expected}: run the probe again and remove that line'
            )
    kind = "features" if record["inputs"] == "model" else record["inputs"]
    for name, without in (("vectors", "features"), ("features", "vectors")):
        if (record[name] is None) != (kind == without):
            raise InputError(
                f'{origin}: the field "{name}" does not go with the inputs "{record["inputs"]}": run the probe again '
                "and remove that line"
            )
    if record["split"] not in record["data"]:
        raise InputError(
            f'{origin}: the field "data" has no {record["split"]}: run the probe again and remove that line'
        )
    counts = _counts(record, origin)
    per_seed = {name: record[name] for name in ("scores", "seconds", "examples_per_second")} | record["figures"]
    for name, values in per_seed.items():
        if len(values) != len(record["seeds"]):
            raise InputError(
                f'{origin}: "{name}" has {len(values)} numbers for {len(record["seeds"])} seeds: run the probe again '
                "and remove that line"
            )
    runs = [
        SeedRun(
            seed=seed,
            score=record["scores"][row],
            figures={name: values[row] for name, values in record["figures"].items()},
            counts=counts[row],
            seconds=record["seconds"][row],
            examples_per_second=record["examples_per_second"][row],
            origin=origin,
        )
        for row, seed in enumerate(record["seeds"])
    ]
    return Result(
        task=record["task"],
        dataset=record["dataset"],
        inputs=kind,
        metric=record["metric"],
        split=record["split"],
        unit=record["unit"],
        item=record["item"],
        preset=record["preset"],
        data=record["data"],
        fingerprints=record["fingerprints"],
        reader=record["reader"],
        settings=record["settings"],
        features=record["features"],
        vectors=record["vectors"],
        runs=tuple(sorted(runs, key=lambda run: run.seed)),
    )


def _counts(record: dict[str, Any], origin: str) -> np.ndarray:
    """float64 [seeds, N, K]."""
    try:
        counts = np.array(record["counts"], dtype=np.float64)
    except (TypeError, ValueError):
        counts = np.empty(0)
    if counts.ndim != 3 or counts.shape[:2] != (len(record["seeds"]), record["items"]) or not np.isfinite(counts).all():
        raise InputError(
            f'{origin}: "counts" does not hold the same number of numbers for each of {record["items"]:,} items and '
            f"each of {len(record['seeds'])} seeds: run the probe again and remove that line"
        )
    return counts
