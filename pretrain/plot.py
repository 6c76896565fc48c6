"""Plot: the learning curves of one or several runs, side by side.

python -m pretrain.plot RUN OUT.png
python -m pretrain.plot RUN RUN OUT.pdf
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.errors import InputError, say
from elmoc.looking.figures import save_figure
from pretrain.evaluation import CONSTANT
from pretrain.run.directory import read_metrics

# The metrics that are drawn, a panel each, and its title.
PANELS = {
    "cosine": "held-out cosine with the true next word",
    "accuracy_at_10": "held-out accuracy@10",
    "reciprocal_rank": "held-out mean reciprocal rank",
}


@dataclass(frozen=True)
class PlotCommand:
    """The command line."""

    run: Annotated[
        list[str], Meta(description="a run directory, or several to be compared")
    ]
    output: Annotated[
        str,
        Meta(
            pattern=r"(?i)\.(png|pdf|svg)$",
            description="the .png, .pdf or .svg file to write",
        ),
    ]


def plot(runs: Sequence[str], output: Path | str) -> None:
    """Draw held-out metrics of runs against words read, a panel each; the best constant
    predictions are dashed.

    A run that lacks a metric, as one with a softmax lacks the cosine, is left out of
    its panel.

    Raises:
        InputError: a run has no evaluation yet.
    """
    # Matplotlib is of an extra.
    from matplotlib.figure import Figure

    evaluations = {run: read_metrics(run, "evaluation") for run in runs}
    for run, lines in evaluations.items():
        if not lines:
            raise InputError(
                f"{run}/metrics.jsonl has no evaluation yet: let it run a little longer"
            )
    drawn = set(chain.from_iterable(lines[-1] for lines in evaluations.values()))
    metrics = [metric for metric in PANELS if metric in drawn]
    # Inches; the legend below a panel has a line for each run.
    figure = Figure(
        figsize=(5 * len(metrics), 4.5 + 0.2 * len(runs)), layout="constrained"
    )
    panels = figure.subplots(1, len(metrics), squeeze=False)
    for axes, metric in zip(panels[0], metrics, strict=True):
        for number, (run, lines) in enumerate(evaluations.items()):
            if metric in lines[-1]:
                # Matplotlib has ten colours by number.
                color = f"C{number % 10}"
                # Of names that begin with `_` its legend has none.
                draw(axes, lines, metric, color=color, label=f" {run}", marker="o")
                draw(axes, lines, CONSTANT + metric, color=color, linestyle="--")
        axes.plot([], [], "k--", label="best constant prediction")
        axes.set(title=PANELS[metric], xlabel="million tokens read")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize="small")
    save_figure(figure, output, dpi=120)
    say(str(output))


def draw(axes: Any, lines: Sequence[dict[str, Any]], metric: str, **style: Any) -> None:
    """A metric against millions of tokens; a value that was not finite leaves a gap."""
    values = np.array([line.get(metric) for line in lines], dtype=float)
    axes.plot([line["words"] / 1e6 for line in lines], values, markersize=3, **style)


main = partial(
    run_main,
    PlotCommand,
    lambda given: plot(given.run, given.output),
    prog="python -m pretrain.plot",
    description="Plot the learning curves of one or several runs.",
)

if __name__ == "__main__":
    sys.exit(main())
