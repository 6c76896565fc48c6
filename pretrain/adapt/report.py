"""Report: what an adaptation did to held-out text of each kind, the new and the general."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.model_directory import read_model_directory
from pretrain.evaluation import MACRO, sources_of
from pretrain.run.directory import RunDirectory, read_metrics

SHOWN = {
    "cosine": "cosine",
    "accuracy_at_10": "accuracy@10",
    "reciprocal_rank": "reciprocal rank",
    "perplexity": "perplexity",
}


def report(run: Path) -> None:
    """Print the held-out metrics by kind of text before the adaptation and after it, of the model that was exported."""
    before = next((each for each in read_metrics(run, "evaluation") if each["update"] == 0), None)
    training = read_model_directory(RunDirectory(run).model).training
    after = training.get("held_out", {})
    print(f"\n{'held out':32}{'before':>10}{'after':>10}{'best constant':>16}")
    for line in rows(before or {}, after):
        print(line)
    if before is None:
        print(f"{RunDirectory(run).metrics} has lost the evaluation before the first update: begin anew to have it")
    if training.get("updates") == 0:
        print("the model is as it was: no later evaluation had a better mean over the kinds of held-out text")
    print(f"\nthe model is in {run}: give that name wherever a model is asked for")


def rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the table: of each kind, and the mean that chose the model; of all text where it has no kinds."""
    titles = {f"{kind}/": f"{kind} text, " for kind in sources_of(after)} or {"": ""}
    for prefix, title in (titles | {MACRO: "mean over kinds, "}).items():
        for metric, label in SHOWN.items():
            if (name := prefix + metric) in after:
                cells = [_shown(before.get(name)), _shown(after[name])]
                constant = _shown(after.get(f"{prefix}constant_{metric}"))
                yield f"{title + label:32}{cells[0]:>10}{cells[1]:>10}{constant:>16}"


def _shown(value: Any) -> str:
    if not isinstance(value, int | float):
        return "–"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
