"""Results of probes: the lines that runs appended to their files, read again, the seeds of equal runs pooled."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from downstream.results.records import ResultLine, encoder_identity, parse_line, word_vectors_identity
from elmoc.errors import InputError, shortened
from elmoc.files.records import parse_json
from elmoc.files.text import open_binary, read_lines
from elmoc.settings import counted

ADVICE = "run the probe again and remove that line"
SUITE_RESULTS = "results.jsonl"
"""What the results of a suite are called in its folder."""
WRITTEN = "remove that line, or give a file that `--results` wrote"
COLUMNS_OF_INPUTS = ("vectors", "features", "both")
"""The kinds of inputs that are compared, in the order of the table. Lines of the kind `model` count as `features`: a
model computes the same layer states as are read from a file."""


@dataclass(frozen=True, kw_only=True)
class Result(ResultLine):
    """The results of lines that agree in all but their seeds; `inputs` is vectors, features or both."""

    counts: Any
    """float64 [seeds, N, K]: what the metric counts in each of the N items of the test set."""
    origins: list[str]
    """The file and the line of each seed."""
    order: int = 0
    """The place of its first line among those of all files."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Task, data set and split."""
        return self.task, self.dataset, self.split

    @property
    def comparable(self) -> str:
        """Equal for results whose difference is due to their inputs alone: task, data, metric and settings agree.

        Files are compared by their contents, in their order, as runs may have found them in different folders. The
        settings of layer states are those of the encoder. A suite may have settings of each kind of inputs, and says
        what is compared.
        """
        return _identity(
            [
                self.task,
                self.dataset,
                self.metric,
                self.split,
                self.fingerprints,
                self.reader,
                self.compared_as or self.compared_settings,
            ]
        )

    @property
    def encoder(self) -> str | None:
        """Equal for layer states of the same model, given to probes in the same way; None without any.

        Foreign feature files are known by their name.
        """
        if self.features is None:
            return None
        return encoder_identity(self.features) + (_identity(self.state_settings) if self.state_settings else "")

    @property
    def word_vectors(self) -> str | None:
        """The fingerprint of the word vectors; None without any."""
        return None if self.vectors is None else word_vectors_identity(self.vectors)


def read_results(paths: Iterable[Path]) -> tuple[list[Result], list[str]]:
    """The results of all lines of the files, and notes on what was left out.

    Lines that agree in task, data, settings and inputs are one result with the seeds of all of them. Where several
    have the same seed, the last one counts. Raises `InputError` with file and line for what is no line of results, and
    for lines that only their suites call comparable.
    """
    results: list[Result] = []
    notes: list[str] = []
    for path in {os.path.realpath(path): path for path in paths}.values():
        for origin, value in _values(path, notes):
            line = parse_line(value, ResultLine, where=origin, advice=ADVICE)
            results.append(_result(line, origin, order=len(results)))
    pooled: dict[str, Result] = {}
    firsts: dict[tuple[str, str], Result] = {}
    for result in _compared_as_now(results):
        _require_same_settings(firsts.setdefault((result.comparable, result.inputs), result), result)
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
        has, had = (f"{counted(items, 'item')} with {counted(columns, 'count')} each" for items, columns in shapes)
        raise InputError(
            f"{other.origins[0]} has {has}, but {first.origins[0]}, which names the same data, has {had}: the data or "
            "the code changed in between, run one of them again and remove its line"
        )


def _compared_as_now(results: Sequence[Result]) -> list[Result]:
    """The results, those of earlier versions compared as others of the same suite, inputs and settings are now.

    Those of other inputs of one suite go with them.
    """

    def suite(result: Result, compared_as: str | None) -> str:
        return _identity([result.place, compared_as])

    def key(result: Result, compared_as: str | None) -> str:
        return _identity([suite(result, compared_as), result.inputs, result.compared_settings])

    later = [each for each in results if each.compared_before_as]
    now = {key(each, each.compared_before_as): each.compared_as for each in later}
    known = {(suite(each, each.compared_before_as), each.inputs) for each in later}
    of_suite: dict[str, set[str | None]] = {}
    for each in results:
        if (found := now.get(key(each, each.compared_as))) is not None:
            of_suite.setdefault(suite(each, each.compared_as), set()).add(found)

    def compared_as(result: Result) -> str | None:
        of_all = of_suite.get(before := suite(result, result.compared_as), set())
        if (before, result.inputs) in known or len(of_all) != 1:
            return now.get(key(result, result.compared_as), result.compared_as)
        return next(iter(of_all))

    return [replace(each, compared_as=compared_as(each)) for each in results]


def _require_same_settings(first: Result, other: Result) -> None:
    """Raise an `InputError` where results are to be compared, as of one suite, and settings of equal inputs differ.

    Suites of versions before told each other by the name of a preset, whose values may have changed. A setting that
    came later counts where both have it.
    """
    differing = [
        f"{name} ({other.settings[name]} and {value})"
        for name, value in first.compared_settings.items()
        if other.settings.get(name, value) != value
    ]
    if differing:
        raise InputError(
            f"{other.origins[0]} and {first.origins[0]} count as results of one suite, but differ in "
            f"{shortened(', '.join(differing), 200)}, as the preset changed in between: run the older suite again, or "
            "make a table of each"
        )


def _pool(results: Sequence[Result], notes: list[str]) -> Result:
    """The last result with the runs of all of them, in the order of the seeds; adds a note for a run left out."""
    runs: dict[int, tuple[Result, int]] = {}
    for result in results:
        require_same_items(results[0], result)
        for row, seed in enumerate(result.seeds):
            if seed in runs:
                old, at = runs[seed]
                if np.array_equal(old.counts[at], result.counts[row]):  # suites of several encoders share a baseline
                    if _mix(old, at) is None and _mix(result, row):  # the old line is of an earlier version
                        runs[seed] = (result, row)
                    continue
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
    columns["mixes"] = [_mix(result, row) for result, row in chosen]
    columns["counts"] = np.stack(columns["counts"])
    columns["order"] = results[0].order
    columns["figures"] = {
        name: [result.figures[name][row] for result, row in chosen]
        for name in results[-1].figures
        if all(name in result.figures for result, _ in chosen)  # another version may have had others
    }
    return replace(results[-1], **columns)


def _mix(result: Result, row: int) -> list[float] | None:
    """The weights and the scale of the mix of one seed, where they are known."""
    return result.mixes[row] if result.mixes else None


def _values(path: Path, notes: list[str]) -> Iterator[tuple[str, Any]]:
    """The place and the value of each line; of a last line that is not whole there is a note instead."""
    _require_results(path)
    whole = _count_line_ends(path)
    lines = read_lines(path)
    for number, line in enumerate(islice(lines, whole), 1):
        if line.strip():
            origin = f"{path}, line {number}"
            yield origin, parse_json(line, where=origin, advice=WRITTEN)
    origin = f"{path}, line {(whole or 0) + 1}"
    try:
        rest = [parse_json(line, where=origin, advice=WRITTEN) for line in lines if line.strip()]
    except InputError:
        notes.append(f"{origin} is left out: it is not whole, a run was stopped while it was written")
        return
    yield from ((origin, value) for value in rest)


def _require_results(path: Path) -> None:
    """Raise an `InputError` for a folder, and for JSON over several lines, as `suite.json` of a suite is.

    It names the results that are in that folder, or beside that file.
    """
    if path.is_dir():
        what, found = "is a folder", path / SUITE_RESULTS
    elif path.suffix != ".gz" and _begins_with(path, b"{\n "):
        what, found = "holds JSON, but not a result on each line", path.with_name(SUITE_RESULTS)
    else:
        return
    raise InputError(f"{path} {what}: give {found if found.is_file() else 'a file that `--results` wrote'}")


def _begins_with(path: Path, content: bytes) -> bool:
    with open_binary(path) as file:
        return file.read(len(content)) == content


def _count_line_ends(path: Path) -> int | None:
    """The number of lines that are whole; None for a compressed file, to which nothing was appended."""
    with open_binary(path) as file:
        return (
            None
            if path.suffix == ".gz"
            else sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))
        )


def _result(line: ResultLine, origin: str, *, order: int) -> Result:
    values = {each.name: getattr(line, each.name) for each in fields(ResultLine)}
    values["counts"] = np.array(line.counts, dtype=np.float64)
    values["inputs"] = "features" if line.inputs == "model" else line.inputs
    return Result(**values, origins=[origin] * len(line.seeds), order=order)


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
