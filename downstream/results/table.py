"""The table of results, `python -m downstream table RESULTS…`: what a frozen encoder is worth on every task."""

import argparse
import os
import shutil
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from downstream.results.columns import mean_mix, metrics_table, result_tables, runs_table
from downstream.results.comparison import PAPER, Metrics, arrange, compare
from downstream.results.merit import differences_table, merit_table, merits_of_encoders, repeated_data
from downstream.results.reading import Result, read_results
from downstream.results.records import layer_names
from downstream.results.row_names import NONE, NamedRow, name_rows
from downstream.results.text_table import TextTable
from elmoc.errors import InputError, shortened
from elmoc.files.figures import figure_format
from elmoc.files.locks import locked
from elmoc.files.records import write_json
from elmoc.files.writing import atomic_path

WIDTH = 160
"""The width of the text where no terminal has one."""
FEW_ITEMS = 30
"""An interval from fewer items than this is rough."""
NO_MERIT = "figure of merit: there is none without results of both and of vectors on one set of data"
MOST_RESAMPLES = 1_000_000
"""More change nothing that is shown."""
OUTPUTS = {
    "text": ("FILE", "write what is printed to a file"),
    "markdown": ("FILE.md", "write the table in Markdown"),
    "json": ("FILE.json", "write all numbers, those of each seed too"),
    "plot": ("FIGURE", "draw the gains and their intervals (.png, .pdf or .svg)"),
    "curve": ("FIGURE", "draw the figure of merit and the gains against the words that the encoders have read"),
    "fractions": ("FIGURE", "draw the gains against the part of the training data (--train-fraction)"),
}
"""Options for files that are written, each with its metavar and help."""

Tasks = Mapping[str, Callable[[], Any]]
"""Name → the function that loads the task, whose metrics the table needs."""


def print_table(arguments: Sequence[str], tasks: Tasks) -> None:
    """`python -m downstream table RESULTS…`; `tasks` are those there are."""
    options = _parse(arguments)
    with ExitStack() as stack:
        for path in filter(None, (getattr(options, name) for name in OUTPUTS)):
            stack.enter_context(locked(path))
        _write_table(options, tasks)


def compared_rows(
    paths: Sequence[Path], tasks: Tasks, *, resamples: int, encoders: Mapping[str, str]
) -> tuple[list[NamedRow], list[str]]:
    """The rows of the table of these results, and notes on what was left out.

    encoders  beginnings of fingerprints → names for them
    """
    results, notes = read_results(paths)
    rows = [
        compare(row, metrics=_metrics(row, tasks), resamples=resamples)
        for row in _in_order(arrange(results), list(tasks))
    ]
    return name_rows(rows, given=encoders), notes


def tables_as_text(rows: Sequence[NamedRow], more: Sequence[TextTable], notes: Sequence[str]) -> str:
    """Scores and gains, more tables below them, and the notes, as wide as the terminal."""
    width = shutil.get_terminal_size(fallback=(WIDTH, 24)).columns
    tables = [*result_tables(rows, width=width), *more]
    width = max(table.width for table in tables)
    wrapped = "\n".join(textwrap.fill(note, width, subsequent_indent="  ") for note in notes)
    return "\n\n".join([*(table.text() for table in tables), wrapped]) + "\n"


def _write_table(options: argparse.Namespace, tasks: Tasks) -> None:
    rows, notes = compared_rows(options.results, tasks, resamples=options.resamples, encoders=dict(options.encoder))
    more = [runs_table(rows), *([metrics_table(rows)] if options.figures else [])]
    if options.merit or options.curve:
        notes = [*repeated_data(rows), *notes]
    if options.merit and (merits := merits_of_encoders(rows)):
        more.append(merit_table(merits))
        more += filter(None, [differences_table(rows)])
    elif options.merit:
        notes = [NO_MERIT, *notes]
    notes = explanations(rows, resamples=options.resamples) + notes
    text = tables_as_text(rows, more, notes)
    print(text, end="")
    markdown = [table.markdown() for table in (*result_tables(rows), *more)]
    for path, content in ((options.text, text), (options.markdown, "\n\n".join([*markdown, *notes]) + "\n")):
        if path:
            with atomic_path(path) as partial:
                partial.write_text(content, encoding="utf-8")
    if options.json:
        written = {"resamples": options.resamples, "rows": [row_as_json(row) for row in rows], "notes": notes}
        write_json(options.json, written)
    if options.plot:
        from downstream.results.plot import draw_gains

        draw_gains(rows, options.plot)
    if options.curve:
        from downstream.results.curve import draw_curve

        draw_curve(rows, options.curve)
    if options.fractions:
        from downstream.results.fraction_plot import draw_fractions

        draw_fractions(rows, options.fractions)


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
        type=_split_name,
        action="append",
        default=[],
        metavar="FINGERPRINT=NAME",
        help="what to call the encoder of which the fingerprint begins so; can be given for several",
    )
    for name, (metavar, what) in OUTPUTS.items():
        parser.add_argument(f"--{name}", type=Path, metavar=metavar, help=what)
    parser.add_argument(
        "--figures", action="store_true", help="show all figures of the tasks, too, not the metric alone"
    )
    parser.add_argument(
        "--merit",
        action="store_true",
        help="show each encoder's figure of merit (gains in units of the paper's), and its difference to the first's",
    )
    parser.add_argument(
        "--resamples", type=int, default=10_000, metavar="N", help="resamples of the bootstrap (default: 10000)"
    )
    options = parser.parse_args(arguments)
    if not 100 <= options.resamples <= MOST_RESAMPLES:
        raise InputError(
            f"--resamples {options.resamples} is too {'few' if options.resamples < 100 else 'many'} for an interval: "
            f"give 100 to {MOST_RESAMPLES:,}"
        )
    used = {os.path.realpath(path) for path in options.results}
    for name in OUTPUTS:
        path = getattr(options, name)
        if path and path.is_dir():
            raise InputError(f"--{name} {path} is a folder: give the name of a file, which may be in it")
        if path and OUTPUTS[name][0] == "FIGURE":
            figure_format(path)  # found before the table is computed
        if path and os.path.realpath(path) in used:
            raise InputError(f"{path} is named twice: what is written needs a file of its own")
        used |= {os.path.realpath(path)} if path else set()
    return options


def _split_name(text: str) -> tuple[str, str]:
    fingerprint, equals, name = text.partition("=")
    if not (fingerprint and equals and name):
        raise InputError(f"--encoder {text} is not possible: give the beginning of a fingerprint, = and a name")
    return fingerprint, name


def _metrics(row: Mapping[str, Result], tasks: Tasks) -> Metrics:
    result = next(iter(row.values()))
    if result.task not in tasks:
        raise InputError(
            f"{result.origins[0]} is of the task {shortened(result.task)}, which is not one of {', '.join(tasks)}: "
            "remove that line"
        )
    return cast(Metrics, tasks[result.task]().metrics)


def _in_order(rows: Sequence[dict[str, Result]], tasks: list[str]) -> list[dict[str, Result]]:
    """Rows in the order of the tasks; within a task those of one data set together, less training data first."""
    firsts = [next(iter(row.values())) for row in rows]
    names = [first.place for first in firsts]
    places = {name: ([*tasks, name[0]].index(name[0]), names.index(name)) for name in names}
    keys = [(*places[first.place], first.train_fraction) for first in firsts]
    return [rows[at] for at in sorted(range(len(rows)), key=keys.__getitem__)]


def explanations(rows: Sequence[NamedRow], *, resamples: int) -> list[str]:
    """What a reader has to know of the numbers, a paragraph each."""
    several = any(len(result.seeds) > 1 for row in rows for result in row.results.values())
    scores, gain, same = "mean ± standard deviation over seeds", "difference of means", "for all seeds and inputs"
    if not several:
        scores, gain, same = "each of one seed, so without a deviation", "difference", "for all inputs"
    paragraphs = [
        f"Scores are percentages, {scores}. A gain is a {gain} in points; [its 95 % interval] and p are from a paired "
        f"bootstrap of {resamples:,} resamples of the items, the same {same}. p is one-sided: how often a resample "
        "shows no gain (≤ 0); the interval leaves out 0 where p is under about 0.025 (or over 0.975). "
        f"{NONE}: was not run.",
        "both: word vectors and features side by side. paper: the gain of ELMo-C over fastText alone in Li et al. "
        "(2019), on SNLI, SST-5, CoNLL-2003 (ner) and OntoNotes (srl, coref).",
    ]
    if any(row.first.split == "dev" for row in rows):
        paragraphs.append("dev: the development part, which also chose the epoch, for all kinds of inputs alike.")
    if any(mean_mix(row) for row in rows):
        paragraphs.append(
            "mix of layers: the weight of each in the probe's scalar mix × its scale"
            f"{', means over seeds' if several else ''}; of both, or of features alone."
        )
    encoders: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row.with_encoder:
            encoders.setdefault(row.encoder, []).append(row.with_encoder.features or {})
    paragraphs += [f"Encoder {name}: {_describe_encoder(origins)}." for name, origins in encoders.items()]
    if any("," in row.dataset for row in rows):
        paragraphs.append(
            "Data that stands in several rows was run in several ways (named after the comma); gains are given only "
            "for runs that differ in nothing but their inputs."
        )
    few = [f"{row.first.task} {row.dataset}" for row in rows if row.first.items < FEW_ITEMS]
    if few:
        paragraphs.append(f"Rough intervals, from under {FEW_ITEMS} items: {', '.join(dict.fromkeys(few))}.")
    return paragraphs


def _describe_encoder(origins: Sequence[dict[str, Any]]) -> str:
    """The fingerprint of an encoder, its layers, and where its features are."""
    first = origins[0]
    parts = [f"model {first['model']}"] if "model" in first else []
    parts += [f"layers {', '.join(layers)}"] if (layers := layer_names(first)) else []
    places = dict.fromkeys(str(origin[key]) for origin in origins for key in ("directory", "file") if key in origin)
    return ", ".join(parts + ([f"from {' and '.join(places)}"] if places else []))


def row_as_json(row: NamedRow) -> dict[str, Any]:
    """All numbers of a row."""
    names = ("task", "dataset", "metric", "split", "unit", "preset", "data", "settings", "items")
    return {
        **{name: getattr(row.first, name) for name in names},
        "encoder": row.encoder,
        "features": row.with_encoder and row.with_encoder.features,
        "vectors": row.with_vectors and row.with_vectors.vectors,
        "scores": {
            kind: {
                **asdict(row.scores[kind]),
                "seeds": result.seeds,
                "scores": result.scores,
                "figures": {name: fmean(values) for name, values in result.figures.items()},
                "seconds": result.seconds,
                "examples_per_second": result.examples_per_second,
                "mixes": result.mixes,
            }
            for kind, result in row.results.items()
        },
        "gains": {kind: asdict(gain) for kind, gain in row.gains.items()},
        "paper": PAPER.get(row.first.task),
    }
