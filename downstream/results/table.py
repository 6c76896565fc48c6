"""The table of results, `python -m downstream table RESULTS…`: what is a frozen encoder
worth on every task?
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from msgspec import Meta

from downstream.inputs.options import INPUT_KINDS
from downstream.printing import Table, say_lines, text_table
from downstream.results.bootstrap import interval
from downstream.results.merit import merit_table
from downstream.results.names import NONE
from downstream.results.rows import PAPER, RESAMPLES, Row, compared_rows
from elmoc.command_line import run_main
from elmoc.files.records import write_json

# How the numbers are to be read, a paragraph each.
EXPLANATIONS = [
    "Scores are percentages, mean ± standard deviation over seeds. A gain is a "
    "difference of means in points; [its 95 % interval] is from a paired bootstrap "
    f"of {RESAMPLES:,} resamples of the items, the same for all seeds and inputs: "
    "a gain whose interval leaves out 0 is more than the luck of these items. "
    f"{NONE}: was not run.",
    "both: word vectors and features side by side. paper: the gain of ELMo-C over "
    "fastText alone in Li et al. (2019), on SNLI, SST-5, CoNLL-2003 (ner) and "
    "OntoNotes (srl, coref). mix of layers: the weight of each in the probe's "
    "scalar mix × its scale, means over seeds; of both, or of features alone.",
    "dev: the development part, which also chose the epoch, for all kinds of "
    "inputs alike.",
]
# Fields of results in JSON: of the row, and of each of its kinds of inputs.
_OF_ROW = ("task", "dataset", "metric", "split", "preset", "data", "items")
_OF_SEEDS = (
    "settings",
    "mean",
    "deviation",
    "seeds",
    "scores",
    "dev_scores",
    "figures",
    "seconds",
    "mixes",
)


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Which results are gathered, and where the table goes."""

    results: Annotated[
        list[Path], Meta(description="files that `--results` wrote of probes")
    ]
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


def show_results(options: TableOptions) -> None:
    """Print the table of results, and write its numbers where the options say so."""
    rows = compared_rows(options.results)
    tables = result_tables(rows)
    merits = merit_table(rows) if options.merit else None
    if merits:
        tables.append(merits)
    say_lines(tables_as_text(tables, EXPLANATIONS))
    if options.json:
        numbers = {"rows": [row_as_json(row) for row in rows], "notes": EXPLANATIONS}
        write_json(options.json, numbers)


def tables_as_text(tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Tables in Markdown, and notes below them."""
    return "\n\n".join([*map(text_table, tables), *notes])


def result_tables(rows: Sequence[Row]) -> list[Table]:
    """Scores of every row; gains; and items, seeds, times and mixes of layers."""
    scores = []
    gains = []
    runs = []
    for row in rows:
        first = row.first
        paper = f"{PAPER[first.task]:+.1f}" if first.task in PAPER else NONE
        found = [row.results.get(kind) for kind in INPUT_KINDS]
        means = [each.score if each else NONE for each in found]
        seeds = [str(len(each.seeds)) if each else NONE for each in found]
        minutes = [
            f"{fmean(each.seconds) / 60:.1f}" if each else NONE for each in found
        ]
        name = [first.task, row.dataset, first.metric, row.encoder]
        scores.append(name + means)
        above = [str(row.gains.get(kind, NONE)) for kind in ("both", "features")]
        gains.append(name + above + [paper])
        runs.append(
            [
                first.task,
                row.dataset,
                f"{first.items:,} {first.item}",
                " / ".join(seeds),
                " / ".join(minutes),
                row.encoder,
                row.word_vectors,
                row.mix,
            ]
        )
    names = ["task", "data", "metric", "encoder"]
    above = ["both − vectors", "features − vectors", "paper"]
    of_runs = ["task", "data", "items", "seeds", "minutes a run"]
    return [
        Table("Scores", names + list(INPUT_KINDS), scores),
        Table("Gains over word vectors alone", names + above, gains, right=above),
        Table(
            f"Runs (three numbers: {' / '.join(INPUT_KINDS)})",
            [*of_runs, "encoder", "word vectors", "mix of layers"],
            runs,
            right=of_runs[2:],
        ),
    ]


def row_as_json(row: Row) -> dict[str, Any]:
    """All numbers of a row."""
    scores = {}
    for kind, result in row.results.items():
        scores[kind] = {name: getattr(result, name) for name in _OF_SEEDS}
        scores[kind]["interval"] = interval(row.resampled[kind])
    gains = {
        kind: {
            "points": gain.points,
            "interval": interval(gain.resampled),
            "error": float(gain.resampled.std(ddof=1)),
        }
        for kind, gain in row.gains.items()
    }
    return {
        **{name: getattr(row.first, name) for name in _OF_ROW},
        "encoder": row.encoder,
        "features": row.with_encoder.features if row.with_encoder else None,
        "word_vectors": row.word_vectors,
        "scores": scores,
        "gains": gains,
        "paper": PAPER.get(row.first.task),
    }


main = partial(
    run_main,
    TableOptions,
    show_results,
    prog="python -m downstream table",
    description="Gather results of probes into one table: scores of word vectors "
    "alone, features alone and both, gains over word vectors alone, and how sure "
    "they are. Seeds of runs that differ in nothing else are pooled.",
)
