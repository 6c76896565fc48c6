"""Plot: the learning curve of a run.

python -m pretrain.plot RUN OUT.png
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from elmoc.errors import InputError, run_command
from elmoc.files.figures import new_figure, save_figure
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
ROUNDING = 1e-3


def plot(run: str, output: str) -> None:
    """Draw held-out cosine and retrieval against words seen, each beside the best constant prediction (dashed).

    Where held-out text has several sources, a second row shows them one by one. A softmax has no cosine.
    """
    figure = new_figure(10, 4.5)
    lines = read_metrics(run, "evaluation")
    if not lines:
        raise InputError(f"{run}/metrics.jsonl has no evaluation yet: let it run a little longer")
    sources = sources_of(lines[-1])
    first = 0 if any("cosine" in line for line in lines) else 1
    above, below = PANELS[first:], BY_SOURCE[first:]
    own = [prefix + each for _, curves in above for each, _ in curves for prefix in ("", "constant_")]
    require_metrics(run, lines, own + [f"{source}/{metric}" for source in sources for _, metric in below])
    words = [line["words"] / 1e6 for line in lines]
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
    print(f"{output}: {len(lines)} evaluations, {words[-1]:.2f} million words")


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


def finish(axes: Any, title: str) -> None:
    """What every panel has."""
    axes.set(title=title, xlabel="million words seen")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="small")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.plot", description=__doc__.split("\n")[0])
    parser.add_argument("run", help="a run directory")
    parser.add_argument("output", help="the PNG file to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: plot(arguments.run, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
