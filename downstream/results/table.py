"""The table of results, `python -m downstream table RESULTS…`: what is a frozen encoder
worth on every task?
"""

import argparse
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from downstream.printing import Column, Table, say, text_table
from downstream.results.merit import merit_table
from downstream.results.records import Result, format_score, mean_and_deviation
from downstream.results.rows import NONE, PAPER, RESAMPLES, Row, Tasks, compared_rows
from elmoc.files.records import write_json
from elmoc.files.writing import atomic_path

KINDS = ("vectors", "features", "both")


def print_table(arguments: Sequence[str], tasks: Tasks) -> None:
    """`python -m downstream table RESULTS…`; `tasks` are those there are."""
    parser = argparse.ArgumentParser(
        prog="python -m downstream table",
        description="Gather results of probes into one table: scores of word vectors alone, features alone and both, "
        "gains over word vectors alone, and how sure they are. Seeds of runs that differ in nothing else are pooled.",
    )
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="RESULTS",
        help="files that `--results` wrote",
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE.md", help="write the table in Markdown"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE.json",
        help="write all numbers, of each seed too",
    )
    text = "show each encoder's figure of merit (gains in units of the paper's), and its difference to the first's"
    parser.add_argument("--merit", action="store_true", help=text)
    options = parser.parse_args(arguments)
    rows = compared_rows(options.results, tasks)
    more = [runs_table(rows)]
    notes = explanations(rows)
    if options.merit and (merits := merit_table(rows)):
        more.append(merits)
    say(tables_as_text(rows, more, notes))
    if options.markdown:
        tables = [
            text_table(table, markdown=True) for table in (*result_tables(rows), *more)
        ]
        with atomic_path(options.markdown) as partial:
            partial.write_text("\n\n".join([*tables, *notes]) + "\n", encoding="utf-8")
    if options.json:
        write_json(
            options.json, {"rows": [row_as_json(row) for row in rows], "notes": notes}
        )


def tables_as_text(
    rows: Sequence[Row], more: Sequence[Table], notes: Sequence[str]
) -> str:
    """Scores, gains, more tables below them, and the notes, as wide as the widest
    table.
    """
    tables = [text_table(table) for table in (*result_tables(rows), *more)]
    width = max(len(line) for table in tables for line in table.splitlines())
    wrapped = "\n".join(
        textwrap.fill(note, width, subsequent_indent="  ") for note in notes
    )
    return "\n\n".join([*tables, wrapped])


def result_tables(rows: Sequence[Row]) -> list[Table]:
    """Scores of every row, and gains."""
    names = [
        Column("task", [row.first.task for row in rows]),
        Column("data", [row.dataset for row in rows]),
    ]
    if len({row.encoder for row in rows} - {NONE}) > 1:
        names.append(Column("encoder", [row.encoder for row in rows]))
    names.append(Column("metric", [row.first.metric for row in rows]))
    scores = []
    gains = []
    for kind in KINDS:
        of_kind = [row.results.get(kind) for row in rows]
        cells = [
            format_score(*mean_and_deviation(each.scores)) if each else NONE
            for each in of_kind
        ]
        scores.append(Column(kind, cells))
    for kind in ("both", "features"):
        found = [row.gains.get(kind) for row in rows]
        gains.append(
            Column(
                f"{kind} − vectors", [str(gain or NONE) for gain in found], right=True
            )
        )
    paper = [
        f"{PAPER[row.first.task]:+.1f}" if row.first.task in PAPER else NONE
        for row in rows
    ]
    gains.append(Column("paper", paper, right=True))
    return [
        Table("Scores", [*names, *scores]),
        Table("Gains over word vectors alone", [*names, *gains]),
    ]


def runs_table(rows: Sequence[Row]) -> Table:
    """The number of items and seeds, the time that training took, and what it made of
    the layers.
    """

    def of_kinds(number: Callable[[Result], str]) -> list[str]:
        kinds = [
            [
                number(row.results[kind]) if kind in row.results else NONE
                for kind in KINDS
            ]
            for row in rows
        ]
        return [" / ".join(numbers) for numbers in kinds]

    mixes = []
    for row in rows:  # of layers: weights and scale, means over seeds
        found = (
            [mix for mix in row.with_encoder.mixes if mix] if row.with_encoder else []
        )
        *weights, scale = [
            f"{fmean(values):.2f}" for values in zip(*found, strict=True)
        ] or [NONE]
        mixes.append(f"{' '.join(weights)} × {scale}" if weights else scale)
    columns = [
        Column("task", [row.first.task for row in rows]),
        Column("data", [row.dataset for row in rows]),
        Column(
            "items",
            [f"{row.first.items:,} {row.first.item}" for row in rows],
            right=True,
        ),
        Column("seeds", of_kinds(lambda result: str(len(result.seeds))), right=True),
        Column(
            "minutes a run",
            of_kinds(lambda result: f"{fmean(result.seconds) / 60:.1f}"),
            right=True,
        ),
        Column("encoder", [row.encoder for row in rows]),
        Column("word vectors", [row.word_vectors for row in rows]),
        Column("mix of layers", mixes),
    ]
    return Table(f"Runs (three numbers: {' / '.join(KINDS)})", columns)


def explanations(rows: Sequence[Row]) -> list[str]:
    """What a reader has to know of the numbers, a paragraph each."""
    paragraphs = [
        "Scores are percentages, mean ± standard deviation over seeds. A gain is a difference of means in points; [its "
        f"95 % interval] is from a paired bootstrap of {RESAMPLES:,} resamples of the items, the same for all seeds "
        f"and inputs: a gain whose interval leaves out 0 is more than the luck of these items. {NONE}: was not run.",
        "both: word vectors and features side by side. paper: the gain of ELMo-C over fastText alone in Li et al. "
        "(2019), on SNLI, SST-5, CoNLL-2003 (ner) and OntoNotes (srl, coref). mix of layers: the weight of each in the "
        "probe's scalar mix × its scale, means over seeds; of both, or of features alone.",
    ]
    if any(row.first.split == "dev" for row in rows):
        paragraphs.append(
            "dev: the development part, which also chose the epoch, for all kinds of inputs alike."
        )
    return paragraphs


def row_as_json(row: Row) -> dict[str, Any]:
    """All numbers of a row."""
    scores = {}
    gains = {}
    for kind, result in row.results.items():
        mean, deviation = mean_and_deviation(result.scores)
        of_runs = {
            name: getattr(result, name)
            for name in ("seeds", "scores", "figures", "seconds", "mixes")
        }
        scores[kind] = {"mean": mean, "deviation": deviation, **of_runs}
    for kind, gain in row.gains.items():
        gains[kind] = {
            name: value for name, value in vars(gain).items() if name != "resampled"
        }
    names = (
        "task",
        "dataset",
        "metric",
        "split",
        "preset",
        "data",
        "settings",
        "items",
    )
    return {
        **{name: getattr(row.first, name) for name in names},
        "encoder": row.encoder,
        "features": row.with_encoder and row.with_encoder.features,
        "word_vectors": row.word_vectors,
        "scores": scores,
        "gains": gains,
        "paper": PAPER.get(row.first.task),
    }
