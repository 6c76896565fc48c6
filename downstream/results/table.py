"""The table of results, `python -m downstream table RESULTS…`: what is a frozen encoder
worth on every task?
"""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from msgspec import Meta

from downstream.printing import Column, Table, say_lines, text_table
from downstream.results.line import format_score, mean_and_deviation
from downstream.results.merit import merit_table
from downstream.results.names import NONE
from downstream.results.records import Result
from downstream.results.rows import PAPER, RESAMPLES, Row, compared_rows
from downstream.tasks import LOADERS
from elmoc.command_line import run_main
from elmoc.files.records import write_json
from elmoc.files.writing import atomic_path

# The order of the columns of scores.
KINDS = ("vectors", "features", "both")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which results are gathered, and where the table goes."""

    results: Annotated[
        list[Path], Meta(description="files that `--results` wrote of probes")
    ]
    markdown: Annotated[
        Path | None,
        Meta(
            description="write the table in Markdown",
            extra={"metavar": "FILE.md"},
        ),
    ] = None
    json: Annotated[
        Path | None,
        Meta(
            description="write all numbers, of each seed too",
            extra={"metavar": "FILE.json"},
        ),
    ] = None
    merit: Annotated[
        bool,
        Meta(
            description="show each encoder's figure of merit (gains in units of the "
            "paper's), and its difference to the first's"
        ),
    ] = False


def main(argv: Sequence[str]) -> int:
    """`python -m downstream table RESULTS…`."""
    return run_main(
        TableOptions,
        show_results,
        argv,
        prog="python -m downstream table",
        description="Gather results of probes into one table: scores of word vectors "
        "alone, features alone and both, gains over word vectors alone, and how sure "
        "they are. Seeds of runs that differ in nothing else are pooled.",
    )


def show_results(options: TableOptions) -> None:
    """Print the table of results, and write it where the options say so."""
    rows = compared_rows(options.results, LOADERS)
    more = [runs_table(rows)]
    notes = explanations(rows)
    merits = merit_table(rows) if options.merit else None
    if merits:
        more.append(merits)
    say_lines(tables_as_text(rows, more, notes))
    if options.markdown:
        tables = result_tables(rows) + more
        parts = [text_table(table, markdown=True) for table in tables]
        with atomic_path(options.markdown) as partial:
            partial.write_text("\n\n".join(parts + notes) + "\n", encoding="utf-8")
    if options.json:
        numbers = {"rows": [row_as_json(row) for row in rows], "notes": notes}
        write_json(options.json, numbers)


def tables_as_text(
    rows: Sequence[Row], more: Sequence[Table], notes: Sequence[str]
) -> str:
    """Scores, gains, more tables below them, and the notes, as wide as the widest
    table.
    """
    tables = [text_table(table) for table in result_tables(rows) + list(more)]
    # Notes are as wide as the widest table.
    width = max(len(line) for line in "\n".join(tables).splitlines())
    wrapped = [textwrap.fill(note, width, subsequent_indent="  ") for note in notes]
    return "\n\n".join(tables) + "\n\n" + "\n".join(wrapped)


def result_tables(rows: Sequence[Row]) -> list[Table]:
    """Scores of every row, and gains."""
    names = [
        Column("task", [row.first.task for row in rows]),
        Column("data", [row.dataset for row in rows]),
    ]
    # A single encoder needs no column.
    encoders = {row.encoder for row in rows} - {NONE}
    if len(encoders) > 1:
        names.append(Column("encoder", [row.encoder for row in rows]))
    names.append(Column("metric", [row.first.metric for row in rows]))
    scores = [_scores_of(kind, rows) for kind in KINDS]
    gains = [_gains_of(kind, rows) for kind in ("both", "features")]
    paper = []
    for row in rows:
        task = row.first.task
        paper.append(f"{PAPER[task]:+.1f}" if task in PAPER else NONE)
    gains.append(Column("paper", paper, right=True))
    return [
        Table("Scores", names + scores),
        Table("Gains over word vectors alone", names + gains),
    ]


def _scores_of(kind: str, rows: Sequence[Row]) -> Column:
    cells = []
    for row in rows:
        result = row.results.get(kind)
        cell = NONE
        if result:
            mean, deviation = mean_and_deviation(result.scores)
            cell = format_score(mean, deviation)
        cells.append(cell)
    return Column(kind, cells)


def _gains_of(kind: str, rows: Sequence[Row]) -> Column:
    cells = [str(row.gains.get(kind, NONE)) for row in rows]
    return Column(f"{kind} − vectors", cells, right=True)


def runs_table(rows: Sequence[Row]) -> Table:
    """Numbers of items and seeds, the time of training, and the mix of the layers."""

    def of_kinds(number: Callable[[Result], str]) -> list[str]:
        cells = []
        for row in rows:
            found = [row.results.get(kind) for kind in KINDS]
            numbers = [number(result) if result else NONE for result in found]
            cells.append(" / ".join(numbers))
        return cells

    def minutes(result: Result) -> str:
        return f"{fmean(result.seconds) / 60:.1f}"

    items = [f"{row.first.items:,} {row.first.item}" for row in rows]
    seeds = of_kinds(lambda result: str(len(result.seeds)))
    columns = [
        Column("task", [row.first.task for row in rows]),
        Column("data", [row.dataset for row in rows]),
        Column("items", items, right=True),
        Column("seeds", seeds, right=True),
        Column("minutes a run", of_kinds(minutes), right=True),
        Column("encoder", [row.encoder for row in rows]),
        Column("word vectors", [row.word_vectors for row in rows]),
        Column("mix of layers", [_mix_of(row.with_encoder) for row in rows]),
    ]
    return Table(f"Runs (three numbers: {' / '.join(KINDS)})", columns)


def _mix_of(result: Result | None) -> str:
    """The weights of the layers and the scale, means over seeds: `0.20 0.80 × 1.10`."""
    mixes = [mix for mix in result.mixes if mix] if result else []
    if not mixes:
        return NONE
    # Column by column: layers in their order, and the scale last.
    means = [f"{fmean(values):.2f}" for values in zip(*mixes, strict=True)]
    weights = " ".join(means[:-1])
    return f"{weights} × {means[-1]}"


def explanations(rows: Sequence[Row]) -> list[str]:
    """How the numbers are to be read, a paragraph each."""
    paragraphs = [
        "Scores are percentages, mean ± standard deviation over seeds. A gain is a "
        "difference of means in points; [its 95 % interval] is from a paired bootstrap "
        f"of {RESAMPLES:,} resamples of the items, the same for all seeds and inputs: "
        "a gain whose interval leaves out 0 is more than the luck of these items. "
        f"{NONE}: was not run.",
        "both: word vectors and features side by side. paper: the gain of ELMo-C over "
        "fastText alone in Li et al. (2019), on SNLI, SST-5, CoNLL-2003 (ner) and "
        "OntoNotes (srl, coref). mix of layers: the weight of each in the probe's "
        "scalar mix × its scale, means over seeds; of both, or of features alone.",
    ]
    if any(row.first.split == "dev" for row in rows):
        paragraphs.append(
            "dev: the development part, which also chose the epoch, for all kinds of "
            "inputs alike."
        )
    return paragraphs


def row_as_json(row: Row) -> dict[str, Any]:
    """All numbers of a row."""
    first = row.first
    scores = {}
    for kind, result in row.results.items():
        mean, deviation = mean_and_deviation(result.scores)
        scores[kind] = {
            "mean": mean,
            "deviation": deviation,
            "seeds": result.seeds,
            "scores": result.scores,
            "figures": result.figures,
            "seconds": result.seconds,
            "mixes": result.mixes,
        }
    gains = {}
    for kind, gain in row.gains.items():
        gains[kind] = {
            "points": gain.points,
            "interval": gain.interval,
            "error": gain.error,
        }
    return {
        "task": first.task,
        "dataset": first.dataset,
        "metric": first.metric,
        "split": first.split,
        "preset": first.preset,
        "data": first.data,
        "settings": first.settings,
        "items": first.items,
        "encoder": row.encoder,
        "features": row.with_encoder.features if row.with_encoder else None,
        "word_vectors": row.word_vectors,
        "scores": scores,
        "gains": gains,
        "paper": PAPER.get(first.task),
    }
