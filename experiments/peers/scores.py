"""Scores of peers: a row of Markdown for each set of data and kind of inputs in files
of results.

    python -m experiments.peers.scores RESULTS…

RESULTS are results.jsonl of suites, and files of fine_tuned. A row has the mean over
seeds, its sample standard deviation, the 95 % interval of a bootstrap over items, and
the seeds. Where another part than the development part is scored, the best development
score stands behind it.
"""

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from downstream.results.bootstrap import interval, resampled_scores
from downstream.tasks import load_task

RESAMPLES = 10_000


def read_lines(paths: list[Path]) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Lines of one seed each, by data, inputs and file of features or vectors."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            # Fine-tuning has neither; word vectors alone have no features.
            features = Path((line.get("features") or {}).get("file", ""))
            origin = Path((line.get("vectors") or {}).get("origin", ""))
            key = line["dataset"], line["inputs"], features.parent.name, origin.name
            found[key].append(line)
    return found


def row(lines: list[dict[str, Any]]) -> str:
    """Mean, deviation, interval and seeds."""
    task = load_task(lines[0]["task"])
    counts = np.array([line["counts"][0] for line in lines], dtype=np.float64)
    scores = [line["scores"][0] for line in lines]
    # The interval is to be of the scores beside it.
    again = task.metrics(counts.sum(axis=1))[task.metric]
    assert np.allclose(again, scores), (again, scores)
    resampled = resampled_scores(
        [counts],
        metric=lambda sums: task.metrics(sums)[task.metric],
        resamples=RESAMPLES,
    )
    low, high = interval(resampled[0])
    text = f"{statistics.fmean(scores):.2f}"
    if len(scores) > 1:
        text += f" ± {statistics.stdev(scores):.2f}"
    text += f" | [{low:.1f}, {high:.1f}] | "
    text += ", ".join(str(line["seeds"][0]) for line in lines)
    # The part that chose the epoch is of the text of training.
    if lines[0].get("split", "dev") != "dev":
        dev = [line["dev_scores"][0] for line in lines]
        text += f"; development part {statistics.fmean(dev):.2f}"
    return text


def main() -> None:
    """Print the rows of the files of the command line."""
    for key, lines in sorted(read_lines(list(map(Path, sys.argv[1:]))).items()):
        name = " ".join(part for part in key if part)
        print(f"| {name} | {row(lines)} |")


if __name__ == "__main__":
    main()
