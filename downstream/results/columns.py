"""Columns of the table of results: scores, gains, how the runs went, and all metrics."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

from downstream.results.comparison import PAPER
from downstream.results.reading import COLUMNS_OF_INPUTS, Result
from downstream.results.records import format_score, mean_and_deviation
from downstream.results.row_names import NONE, NamedRow, several_encoders
from downstream.results.text_table import Column, TextTable

COMPARED = ("both", "features")
"""The kinds of inputs that are compared with vectors alone."""


def result_tables(rows: Sequence[NamedRow], *, width: float = math.inf) -> list[TextTable]:
    """Scores and gains of every row: one table, or two where the text of one is wider than `width`."""
    names = _name_columns(rows, "metric", [row.first.metric for row in rows])
    scores = [Column(kind, [str(row.scores.get(kind, NONE)) for row in rows]) for kind in COLUMNS_OF_INPUTS]
    gains = []
    for kind in COMPARED:
        of_kind = [row.gains.get(kind) for row in rows]
        gains.append(Column(f"{kind} − vectors", [str(gain or NONE) for gain in of_kind], right=True))
        gains.append(Column("p", [format_p(gain.p_value) if gain else NONE for gain in of_kind], right=True))
    paper = [f"{PAPER[row.first.task]:+.1f}" if row.first.task in PAPER else NONE for row in rows]
    gains.append(Column("paper", paper, right=True))
    one = TextTable("Scores, and gains over word vectors alone", [*names, *scores, *gains])
    if one.width <= width:
        return [one]
    return [TextTable("Scores", [*names, *scores]), TextTable("Gains over word vectors alone", [*names, *gains])]


def runs_table(rows: Sequence[NamedRow]) -> TextTable:
    """The number of items, the preset, the time that training took, and what it made of the layers."""
    numbers: dict[str, Callable[[Result], str]] = {
        "seeds": lambda result: str(len(result.seeds)),
        "minutes a run": lambda result: format_number(fmean(result.seconds) / 60),
        "examples/s": lambda result: format_number(fmean(result.examples_per_second)),
    }
    columns = [
        Column("task", [row.first.task for row in rows]),
        Column("data", [row.dataset for row in rows]),
        Column("items", [f"{row.first.items:,} {row.first.item}" for row in rows], right=True),
        Column("preset", [row.first.preset for row in rows]),
        *(Column(name, [_each_kind(row, number) for row in rows], right=True) for name, number in numbers.items()),
        Column("encoder", [row.encoder for row in rows]),
        Column("word vectors", [row.word_vectors for row in rows]),
    ]
    mixes = [mean_mix(row) for row in rows]
    if any(mixes):
        columns.append(Column("mix of layers", [mix or NONE for mix in mixes]))
    return TextTable(f"Runs (three numbers: {' / '.join(COLUMNS_OF_INPUTS)})", columns)


def mean_mix(row: NamedRow) -> str:
    """Weights of layers and the scale of a probe's scalar mix, means over seeds; "" where they are not known."""
    result = row.with_encoder
    mixes = [] if result is None else [mix for mix in result.mixes if mix is not None]
    if not mixes or len({len(mix) for mix in mixes}) > 1:
        return ""
    *weights, scale = (fmean(values) for values in zip(*mixes, strict=True))
    return f"{' '.join(f'{weight:.2f}' for weight in weights)} × {scale:.2f}"


def metrics_table(rows: Sequence[NamedRow]) -> TextTable:
    """All metrics of every task: what the reported one is made of, and its variants."""
    named, metrics, means = [], [], []
    for row in rows:
        for metric in dict.fromkeys(name for result in row.results.values() for name in result.figures):
            known = {kind: result.figures[metric] for kind, result in row.results.items() if metric in result.figures}
            means.append({kind: mean_and_deviation(values) for kind, values in known.items()})
            metrics.append(metric)
            named.append(row)
    columns = _name_columns(named, "figure", metrics)
    for kind in COLUMNS_OF_INPUTS:
        columns.append(Column(kind, [format_score(*mean[kind]) if kind in mean else NONE for mean in means]))
    for kind in COMPARED:
        gains = [
            f"{mean[kind][0] - mean['vectors'][0]:+.2f}" if {kind, "vectors"} <= mean.keys() else NONE for mean in means
        ]
        columns.append(Column(f"{kind} − vectors", gains, right=True))
    return TextTable("All figures", columns)


def format_p(p_value: float) -> str:
    """Three decimals, or the side on which it is of all that three can tell."""
    if p_value < 0.001:
        return "<0.001"
    return ">0.999" if p_value > 0.999 else f"{p_value:.3f}"


def format_number(number: float) -> str:
    """Two significant digits under ten, whole numbers above."""
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.2g}"


def _name_columns(rows: Sequence[NamedRow], header: str, metrics: Sequence[str]) -> list[Column]:
    """Task, data, the encoder where there are several, and metrics under this header."""
    columns = [Column("task", [row.first.task for row in rows]), Column("data", [row.dataset for row in rows])]
    if several_encoders(rows):
        columns.append(Column("encoder", [row.encoder for row in rows]))
    return [*columns, Column(header, metrics)]


def _each_kind(row: NamedRow, number: Callable[[Result], str]) -> str:
    """The number of each kind of inputs, or one where all have the same."""
    numbers = [number(row.results[kind]) if kind in row.results else NONE for kind in COLUMNS_OF_INPUTS]
    return numbers[0] if len(set(numbers)) == 1 else " / ".join(numbers)
