"""Plot: the learning curves of one or several runs, side by side.

python -m pretrain.plot RUN OUT.png
python -m pretrain.plot RUN RUN OUT.pdf
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from elmoc.errors import InputError, run_command
from elmoc.looking.figures import figure_format, save_figure
from pretrain.run.directory import read_metrics

PANELS = {
    "cosine": "held-out cosine with the true next word",
    "accuracy_at_10": "held-out accuracy@10",
    "reciprocal_rank": "held-out mean reciprocal rank",
}


def plot(runs: Sequence[str], output: str) -> None:
    """Draw held-out metrics of runs against words read, a panel each; the best constant
    predictions are dashed.

    A run that lacks a metric, as one with a softmax lacks the cosine, is left out of
    its panel.
    """
    from matplotlib.figure import Figure  # of an extra

    figure_format(output)
    evaluations = {run: read_metrics(run, "evaluation") for run in runs}
    for run, lines in evaluations.items():
        if not lines:
            raise InputError(
                f"{run}/metrics.jsonl has no evaluation yet: let it run a little longer"
            )
    panels = [
        metric
        for metric in PANELS
        if any(metric in lines[-1] for lines in evaluations.values())
    ]
    figure = Figure(
        figsize=(5 * len(panels), 4.5 + 0.2 * len(runs)), layout="constrained"
    )
    for axes, metric in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        for number, (run, lines) in enumerate(evaluations.items()):
            if metric in lines[-1]:
                draw(
                    axes, lines, metric, color=f"C{number % 10}", label=run, marker="o"
                )
                draw(
                    axes,
                    lines,
                    f"constant_{metric}",
                    color=f"C{number % 10}",
                    linestyle="--",
                )
        axes.plot([], [], "k--", label="best constant prediction")
        axes.set(title=PANELS[metric], xlabel="million words read")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), fontsize="small")
    save_figure(figure, output, dpi=120)
    for run, lines in evaluations.items():
        print(
            f"{run}: {len(lines):,} evaluations, {lines[-1]['words'] / 1e6:.2f} million words"
        )
    print(output)


def draw(axes: Any, lines: Sequence[dict[str, Any]], metric: str, **style: Any) -> None:
    """A metric against millions of words; what was not finite leaves a gap."""
    values = [line.get(metric) for line in lines]
    words = [line["words"] / 1e6 for line in lines]
    axes.plot(
        words,
        [float("nan") if value is None else value for value in values],
        markersize=3,
        **style,
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.plot", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "run", nargs="+", help="a run directory, or several to be compared"
    )
    parser.add_argument("output", help="the .png, .pdf or .svg file to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: plot(arguments.run, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
