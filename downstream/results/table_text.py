"""How does the table of results read: its columns, and the explanations under it?"""

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple
from statistics import fmean

from downstream.results.comparison import Gain
from downstream.results.reading import KINDS, SeedRun
from downstream.results.records import format_score, mean_and_deviation
from downstream.results.table_rows import NONE, NamedRow
from downstream.results.text_table import Column, Grid

PAPER = {"snli": 1.1, "coref": 4.0, "sst5": 2.5, "ner": 1.3, "srl": 2.2}
"""Task → the gain of ELMo-C over fastText alone in Li et al. (2019)."""
COMPARED = ("both", "features")
"""The kinds of inputs that are compared with vectors alone."""
FEW_ITEMS = 30
"""An interval from fewer items than this is rough."""


def result_grids(rows: Sequence[NamedRow], *, width: float = math.inf) -> list[Grid]:
    """Scores and gains of every row: one table, or two where the text of one is wider than `width`."""
    names, scores, gains = _name_columns(rows), _score_columns(rows), _gain_columns(rows)
    one = Grid("Scores, and gains over word vectors alone", [*names, *scores, *gains])
    if one.width <= width:
        return [one]
    return [Grid("Scores", [*names, *scores]), Grid("Gains over word vectors alone", [*names, *gains])]


def runs_grid(rows: Sequence[NamedRow]) -> Grid:
    """How the scores were come by."""
    task, data, *_ = _name_columns(rows)
    firsts = [named.row.any for named in rows]
    columns = [
        Column("items", [f"{first.counts.shape[1]:,} {first.item}" for first in firsts], to_right=True),
        Column("preset", [first.preset for first in firsts]),
        Column("seeds", [_each_kind(named, lambda runs: str(len(runs))) for named in rows], to_right=True),
        Column("minutes a run", [_each_kind(named, _minutes) for named in rows], to_right=True),
        Column("examples/s", [_each_kind(named, _speed) for named in rows], to_right=True),
        Column("encoder", [named.encoder for named in rows]),
        Column("word vectors", [named.word_vectors for named in rows]),
    ]
    return Grid(f"Runs (three numbers: {' / '.join(KINDS)})", [task, data, *columns])


def figures_grid(rows: Sequence[NamedRow]) -> Grid:
    """All figures of every task: what the metric is made of, and its variants."""
    lines = [(named, figure) for named in rows for figure in named.row.any.runs[0].figures]
    means = [
        {
            kind: mean_and_deviation([run.figures[figure] for run in result.runs])
            for kind, result in named.row.results.items()
        }
        for named, figure in lines
    ]
    scores = [Column(kind, [format_score(*mean[kind]) if kind in mean else NONE for mean in means]) for kind in KINDS]
    gains = [
        Column(
            f"{kind} − vectors",
            [
                f"{mean[kind][0] - mean['vectors'][0]:+.2f}" if kind in mean and "vectors" in mean else NONE
                for mean in means
            ],
            to_right=True,
        )
        for kind in COMPARED
    ]
    names = _name_columns([named for named, _ in lines])[:-1]
    return Grid("All figures", [*names, Column("figure", [figure for _, figure in lines]), *scores, *gains])


def explanations(rows: Sequence[NamedRow], *, resamples: int) -> list[str]:
    """What a reader has to know of the numbers, a paragraph each."""
    paragraphs = [
        "Scores are percentages, mean ± standard deviation over seeds. A gain is a difference of means in points; "
        f"[its 95 % interval] and p are from a paired bootstrap of {resamples:,} resamples of the items, the same for "
        f"all seeds and inputs. p is one-sided: how often a resample shows no gain (≤ 0); the interval leaves out 0 "
        f"where p is under about 0.025 (or over 0.975). {NONE}: was not run.",
        "both: word vectors and features side by side. paper: the gain of ELMo-C over fastText alone in Li et al. "
        "(2019), on SNLI, SST-5, CoNLL-2003 (ner) and OntoNotes (srl, coref).",
    ]
    paragraphs += _describe_encoders(rows)
    if any("," in named.dataset for named in rows):
        paragraphs.append(
            "Data that stands in several rows was run in several ways (named after the comma); gains are given only "
            "for runs that differ in nothing but their inputs."
        )
    few = [f"{named.row.any.task} {named.dataset}" for named in rows if named.row.any.counts.shape[1] < FEW_ITEMS]
    if few:
        paragraphs.append(f"Rough intervals, from under {FEW_ITEMS} items: {', '.join(dict.fromkeys(few))}.")
    return paragraphs


def format_gain(gain: Gain) -> str:
    """`+6.02 [+4.10, +8.00]`."""
    points, low, high = (f"{round(number, 2) + 0.0:+.2f}" for number in (gain.points, *astuple(gain.interval)))  # no -0
    return f"{points} [{low}, {high}]"


def format_p(p_value: float) -> str:
    """Three decimals, or on which side it is of all that three can tell."""
    if p_value < 0.001:
        return "<0.001"
    return ">0.999" if p_value > 0.999 else f"{p_value:.3f}"


def format_number(number: float) -> str:
    """Two significant digits under ten, whole numbers above."""
    return f"{number:,.0f}" if number >= 9.95 else f"{number:.2g}"


def several_encoders(rows: Sequence[NamedRow]) -> bool:
    """Whether rows have to say which encoder they are about."""
    return len({named.encoder for named in rows} - {NONE}) > 1


def _name_columns(rows: Sequence[NamedRow]) -> list[Column]:
    columns = [
        Column("task", [named.row.any.task for named in rows]),
        Column("data", [named.dataset for named in rows]),
    ]
    if several_encoders(rows):
        columns.append(Column("encoder", [named.encoder for named in rows]))
    return [*columns, Column("metric", [named.row.any.metric for named in rows])]


def _score_columns(rows: Sequence[NamedRow]) -> list[Column]:
    columns = []
    for kind in KINDS:
        scores = [named.row.scores.get(kind) for named in rows]
        cells = [NONE if score is None else format_score(score.mean, score.deviation) for score in scores]
        columns.append(Column(kind, cells))
    return columns


def _gain_columns(rows: Sequence[NamedRow]) -> list[Column]:
    columns = []
    for kind in COMPARED:
        gains = [named.row.gains.get(kind) for named in rows]
        cells = [NONE if gain is None else format_gain(gain) for gain in gains]
        columns.append(Column(f"{kind} − vectors", cells, to_right=True))
        cells = [NONE if gain is None else format_p(gain.p_value) for gain in gains]
        columns.append(Column("p", cells, to_right=True))
    paper = [PAPER.get(named.row.any.task) for named in rows]
    return [*columns, Column("paper", [NONE if gain is None else f"{gain:+.1f}" for gain in paper], to_right=True)]


def _each_kind(named: NamedRow, number: Callable[[Sequence[SeedRun]], str]) -> str:
    """The number of each kind of inputs, or one where all have the same."""
    results = named.row.results
    numbers = [number(results[kind].runs) if kind in results else NONE for kind in KINDS]
    return numbers[0] if len(set(numbers)) == 1 else " / ".join(numbers)


def _minutes(runs: Sequence[SeedRun]) -> str:
    return format_number(fmean(run.seconds for run in runs) / 60)


def _speed(runs: Sequence[SeedRun]) -> str:
    return format_number(fmean(run.examples_per_second for run in runs))


def _describe_encoders(rows: Sequence[NamedRow]) -> list[str]:
    """A paragraph for each encoder: its fingerprint, its layers, and where its features are."""
    encoders: dict[str, list[dict[str, object]]] = {}
    for named in rows:
        if named.row.encoder is not None:
            encoders.setdefault(named.encoder, []).append(named.row.encoder.features or {})
    paragraphs = []
    for name, origins in encoders.items():
        parts = [f"model {origins[0]['model']}"] if "model" in origins[0] else []
        layers = origins[0].get("layers")
        parts += [f"layers {', '.join(map(str, layers))}"] if isinstance(layers, list) else []
        places = dict.fromkeys(str(origin[key]) for origin in origins for key in ("directory", "file") if key in origin)
        parts += [f"from {' and '.join(places)}"] if places else []
        paragraphs.append(f"BidirectionalEncoder {name}: {', '.join(parts)}.")
    return paragraphs
