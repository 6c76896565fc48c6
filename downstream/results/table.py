"""What is a frozen encoder worth on every task? `python -m downstream table RESULTS…` gathers runs into one table."""

import argparse
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from downstream.probe.task import Task
from downstream.results.comparison import arrange, compare
from downstream.results.reading import Result, read_results
from downstream.results.table_rows import NamedRow, name_rows
from downstream.results.table_text import PAPER, explanations, figures_grid, result_grids, runs_grid
from downstream.results.text_table import Grid
from elmoc.errors import InputError
from elmoc.files import atomic_path, write_json

WIDTH = 160
"""How wide the text may be where no terminal says so."""


def print_table(arguments: Sequence[str], tasks: Mapping[str, Callable[[], Task[Any, Any]]]) -> None:
    """`python -m downstream table RESULTS…`; `tasks` loads the task of a name."""
    options = _parse(arguments)
    results, notes = read_results(options.results)
    rows = name_rows(
        [
            compare(row, figures=_load(row, tasks).metrics, resamples=options.resamples)
            for row in _in_order(arrange(results), list(tasks))
        ],
        given=options.encoder_names,
    )
    width = shutil.get_terminal_size(fallback=(WIDTH, 24)).columns
    more = [runs_grid(rows), *([figures_grid(rows)] if options.figures else [])]
    notes = explanations(rows, resamples=options.resamples) + notes
    text = _text([*result_grids(rows, width=width), *more], notes)
    print(text, end="")
    if options.text:
        _write(options.text, text)
    if options.markdown:
        grids = [*result_grids(rows), *more]
        _write(options.markdown, "\n\n".join([*(grid.markdown() for grid in grids), *notes]) + "\n")
    if options.json:
        written = {"resamples": options.resamples, "rows": [_as_json(row) for row in rows], "notes": notes}
        write_json(options.json, written)
    if options.plot:
        from downstream.results.plot import draw_gains

        draw_gains(rows, options.plot)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m downstream table",
        description="Gather results of probes into one table: a row for each task and data set with the scores of word "
        "vectors alone, features alone and both, the gains over word vectors alone, and how sure they are. Seeds of "
        "runs that differ in nothing else are pooled.",
    )
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="files that `--results` wrote")
    parser.add_argument(
        "--encoder",
        action="append",
        default=[],
        metavar="FINGERPRINT=NAME",
        help="what to call the encoder of which the fingerprint begins so; can be given for several",
    )
    parser.add_argument("--text", type=Path, metavar="FILE", help="write what is printed to a file")
    parser.add_argument("--markdown", type=Path, metavar="FILE.md", help="write the table in Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write all numbers, those of each seed too")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the gains and their intervals")
    parser.add_argument(
        "--figures", action="store_true", help="show all figures of the tasks, too, not the metric alone"
    )
    parser.add_argument(
        "--resamples", type=int, default=10_000, metavar="N", help="resamples of the bootstrap (default: 10000)"
    )
    options = parser.parse_args(arguments)
    if options.resamples < 100:
        raise InputError(f"--resamples {options.resamples} is too few for an interval: give 100 or more")
    options.encoder_names = dict(_split_name(text) for text in options.encoder)
    used = {path.resolve() for path in options.results}
    for name in ("text", "markdown", "json", "plot"):
        path = getattr(options, name)
        if path is None:
            continue
        if path.is_dir():
            raise InputError(f"--{name} {path} is a folder: give the name of a file, which may be in it")
        if path.resolve() in used:
            raise InputError(f"{path} is named twice: what is written needs a file of its own")
        used.add(path.resolve())
    return options


def _split_name(text: str) -> tuple[str, str]:
    fingerprint, equals, name = text.partition("=")
    if not (fingerprint and equals and name):
        raise InputError(f"--encoder {text} is not possible: give the beginning of a fingerprint, = and a name")
    return fingerprint, name


def _load(row: Mapping[str, Result], tasks: Mapping[str, Callable[[], Task[Any, Any]]]) -> Task[Any, Any]:
    result = next(iter(row.values()))
    if result.task not in tasks:
        raise InputError(
            f"{result.runs[0].origin} is of the task {result.task}, which is not one of {', '.join(tasks)}: "
            "remove that line"
        )
    return tasks[result.task]()


def _in_order(rows: list[dict[str, Result]], tasks: list[str]) -> list[dict[str, Result]]:
    """Rows in the order of the tasks; within a task those of one data set together."""
    names = [(result.task, result.dataset, result.split) for row in rows for result in [next(iter(row.values()))]]
    order = sorted(
        range(len(rows)),
        key=lambda place: (
            tasks.index(names[place][0]) if names[place][0] in tasks else len(tasks),
            names.index(names[place]),
        ),
    )
    return [rows[place] for place in order]


def _text(grids: Sequence[Grid], notes: Sequence[str]) -> str:
    width = max(grid.width for grid in grids)
    wrapped = [textwrap.fill(note, width, subsequent_indent="  ") for note in notes]
    return "\n\n".join([*(grid.text() for grid in grids), "\n".join(wrapped)]) + "\n"


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _as_json(named: NamedRow) -> dict[str, Any]:
    row, result = named.row, named.row.any
    names = {"task", "dataset", "split", "metric", "unit", "preset", "data", "settings"}
    common = {name: value for name, value in vars(result).items() if name in names}
    return {
        **common,
        "items": result.counts.shape[1],
        "encoder": named.encoder,
        "features": None if row.encoder is None else row.encoder.features,
        "vectors": None if row.word_vectors is None else row.word_vectors.vectors,
        "scores": {
            kind: asdict(score)
            | {
                "seeds": [run.seed for run in row.results[kind].runs],
                "scores": [run.score for run in row.results[kind].runs],
                "figures": {
                    name: fmean(run.figures[name] for run in row.results[kind].runs)
                    for name in row.results[kind].runs[0].figures
                },
                "seconds": [run.seconds for run in row.results[kind].runs],
                "examples_per_second": [run.examples_per_second for run in row.results[kind].runs],
            }
            for kind, score in row.scores.items()
        },
        "gains": {kind: asdict(gain) for kind, gain in row.gains.items()},
        "paper": PAPER.get(result.task),
    }
