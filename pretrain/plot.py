"""Plot: the learning curve of a run.

python -m pretrain.plot RUN OUT.png
"""

import argparse
import sys
from collections.abc import Sequence
from math import inf

from elmoc.errors import InputError, run_command
from elmoc.files.writing import atomic_path
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

ROUNDING = 1e-3


def plot(run: str, output: str) -> None:
    """Draw held-out cosine and retrieval against words seen, each beside the best constant prediction (dashed)."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'elmoc[plots]'") from None
    lines = read_metrics(run, "evaluation")
    if not lines:
        raise InputError(f"{run}/metrics.jsonl has no evaluation yet: let it run a little longer")
    for name in (prefix + each for _, curves in PANELS for each, _ in curves for prefix in ("", "constant_")):
        for line in lines:
            value = line.get(name, inf)
            if value is not None and abs(value) > 1 + ROUNDING:
                raise InputError(
                    f"{run}/metrics.jsonl: the evaluation after update {line['update']} has no {name} of at most 1: "
                    "remove its line"
                )
    words = [line["words"] / 1e6 for line in lines]
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, curves) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        for row, (name, label) in enumerate(curves):
            axes.plot(words, [line[name] for line in lines], f"C{row}o-", markersize=3, label=label)
            axes.plot(words, [line[f"constant_{name}"] for line in lines], f"C{row}--", linewidth=1)
        axes.set(title=title, xlabel="million words seen")
        axes.plot([], [], "k--", linewidth=1, label="best constant prediction")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="small")
    with atomic_path(output) as partial:
        figure.savefig(partial, format="png", dpi=120)
    print(f"{output}: {len(lines)} evaluations, {words[-1]:.2f} million words")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pretrain.plot", description=__doc__.split("\n")[0])
    parser.add_argument("run", help="a run directory")
    parser.add_argument("output", help="the PNG file to write")
    arguments = parser.parse_args(argv)
    return run_command(lambda: plot(arguments.run, arguments.output))


if __name__ == "__main__":
    sys.exit(main())
