"""Report: what an adaptation did to held-out text of each kind, the new and the general."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.model_directory import read_model_directory
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
        print("the model is as it was: no evaluation of all held-out text was better than the first")
    print(f"\nthe model is in {run}: give that name wherever a model is asked for")


def rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the table, kind by kind; of all text where kinds have no names."""
    kinds = list(dict.fromkeys(name.partition("/")[0] for name in after if "/" in name)) or [""]
    for kind in kinds:
        for metric, label in SHOWN.items():
            name, constant = (f"{kind}/{each}".lstrip("/") for each in (metric, f"constant_{metric}"))
            if name in after:
                cells = [_shown(before.get(name)), _shown(after[name])]
                title = f"{kind} text, {label}" if kind else label
                yield f"{title:32}{cells[0]:>10}{cells[1]:>10}{_shown(after.get(constant)):>16}"


def _shown(value: Any) -> str:
    if not isinstance(value, int | float):
        return "–"
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.3g}"
