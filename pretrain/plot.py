"""Plot: the learning curve of a run, or those of several side by side.

python -m pretrain.plot RUN OUT.png
python -m pretrain.plot RUN RUN OUT.pdf
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from elmoc.errors import InputError, run_command
from elmoc.files.figures import figure_format, new_figure, save_figure
from elmoc.settings import counted
from pretrain.evaluation import sources_of
from pretrain.run.directory import read_metrics

PANELS = (
    ("held-out cosine", (("cosine", "cosine with the true next word"),)),
    (
        "held-out retrieval",
        (
            ("accuracy_at_10", "accuracy@10"),
            ("reciprocal_rank", "mean reciprocal rank"),
            ("accuracy_at_1", "accuracy@1"),
        ),
    ),
)

BY_SOURCE = (("held-out cosine by source", "cosine"), ("held-out accuracy@10 by source", "accuracy_at_10"))
"""Panels of a second row, where held-out text has sources."""
COMPARED = (
    ("held-out cosine", "cosine"),
    ("held-out accuracy@10", "accuracy_at_10"),
    ("held-out mean reciprocal rank", "reciprocal_rank"),
)
"""Panels where there are several runs."""
ROUNDING = 1e-3


def plot(run: str, output: str) -> None:
    """Draw held-out cosine and retrieval against words seen, each beside the best constant prediction (dashed).

    Where held-out text has several sources, a second row shows them one by one. A softmax has no cosine.
    """
    figure_format(output)
    figure = new_figure(10, 4.5)
    lines = read_evaluations(run)
    sources = sources_of(lines[-1])
    first = 0 if any("cosine" in line for line in lines) else 1
    above, below = PANELS[first:], BY_SOURCE[first:]
    own = [prefix + each for _, curves in above for each, _ in curves for prefix in ("", "constant_")]
    require_metrics(run, lines, own + [f"{source}/{metric}" for source in sources for _, metric in below])
    words = millions_of_words(lines)
    rows = 2 if len(sources) > 1 else 1
    figure.set_figheight(4.5 * rows)
    panels = figure.subplots(rows, len(above), squeeze=False)
    for axes, (title, curves) in zip(panels[0], above, strict=True):
        for row, (name, label) in enumerate(curves):
            axes.plot(words, [line[name] for line in lines], f"C{row}o-", markersize=3, label=label)
            axes.plot(words, [line[f"constant_{name}"] for line in lines], f"C{row}--", linewidth=1)
        axes.plot([], [], "k--", linewidth=1, label="best constant prediction")
        finish(axes, title)
    if rows > 1:
        for axes, (title, metric) in zip(panels[1], below, strict=True):
            for row, source in enumerate(sources):
                values = [line[f"{source}/{metric}"] for line in lines]
                axes.plot(words, values, color=f"C{row}", marker="o", markersize=3, label=source)
            finish(axes, title)
    save_figure(figure, output, dpi=120)
    print(f"{output}: {described(lines)}")


def compare(runs: Sequence[str], output: str) -> None:
    """Draw held-out metrics of several runs against words seen, one a panel, and the best constant predictions dashed.

    A run that lacks a metric, as one with a softmax does the cosine, is left out of its panel.
    """
    figure_format(output)
    figure = new_figure(10, 4.5)
    evaluations = {run: read_evaluations(run) for run in runs}
    panels = [
        (title, metric, having)
        for title, metric in COMPARED
        if (having := [run for run, lines in evaluations.items() if metric in lines[-1]]) or title != COMPARED[0][0]
    ]
    figure.set_size_inches(5 * len(panels), 4.5 + 0.2 * len(evaluations))
    shown: dict[str, Any] = {}
    for axes, (title, metric, having) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for number, (run, lines) in enumerate(evaluations.items()):
            if run in having:
                require_metrics(run, lines, [metric, f"constant_{metric}"])
                words, style = millions_of_words(lines), {"color": f"C{number % 10}"}
                (shown[run],) = axes.plot(words, [line[metric] for line in lines], marker="o", markersize=3, **style)
                axes.plot(words, [line[f"constant_{metric}"] for line in lines], "--", linewidth=1, **style)
        (shown["best constant prediction"],) = axes.plot([], [], "k--", linewidth=1)
        finish(axes, title, legend=False)
    names = [name.replace("$", r"\$") for name in shown]
    figure.legend(shown.values(), names, loc="outside lower center", fontsize="small")
    save_figure(figure, output, dpi=120)
    for run, lines in evaluations.items():
        print(f"{run}: {described(lines)}")
    print(output)


def read_evaluations(run: str) -> list[dict[str, Any]]:
    """The evaluations of a run; an `InputError` where there is none yet."""
    lines = read_metrics(run, "evaluation")
    if not lines:
        raise InputError(f"{run}/metrics.jsonl has no evaluation yet: let it run a little longer")
    return lines


def millions_of_words(lines: Sequence[Mapping[str, Any]]) -> list[float]:
    """How many million words had been seen at each evaluation."""
    return [line["words"] / 1e6 for line in lines]


def described(lines: Sequence[Mapping[str, Any]]) -> str:
    """How many evaluations there are, and how far they reach."""
    return f"{counted(len(lines), 'evaluation')}, {millions_of_words(lines)[-1]:.2f} million words"


def require_metrics(run: str, lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Raise an `InputError` unless every evaluation has these metrics, each of at most 1 or not finite."""
    for name in names:
        for line in lines:
            value = line.get(name, inf)
            if value is not None and abs(value) > 1 + ROUNDING:
                raise InputError(
                    f"{run}/metrics.jsonl: the evaluation after update {line['update']} has no {name} of at most 1: "
                    "remove its line"
                )


def finish(axes: Any, title: str, *, legend: bool = True) -> None:
    """What every panel has, with or without a legend of its own."""
    axes.set(title=title, xlabel="million words seen")
    axes.grid(alpha=0.3)
    if legend:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="small")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.plot", description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="+", help="a run directory, or several to be compared")
    parser.add_argument("output", help="the .png, .pdf or .svg file to write")
    arguments = parser.parse_args(argv)
    one, *more = arguments.run
    return run_command(lambda: compare(arguments.run, arguments.output) if more else plot(one, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
