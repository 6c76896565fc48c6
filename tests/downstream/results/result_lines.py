"""Made-up lines of results, as runs of a probe write them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from downstream.results.records import STATE_SETTINGS
from downstream.results.rows import Row, compared_rows
from downstream.settings import SMALL_INPUTS

SETTINGS = STATE_SETTINGS | SMALL_INPUTS | {"learning_rate": 0.001, "hidden_size": 200, "train_fraction": 1.0}

WORSE = {1: [2, 0, 0, 1] * 5, 2: [2, 0, 0, 0] * 5}  # entity F1 37.5 and 25
BETTER = {1: [2, 1, 0, 2] * 5, 2: [2, 2, 0, 2] * 5}  # 62.5 and 75


def entity_f1(counts: Sequence[Sequence[float]]) -> float:
    """From [right, gold, predicted] of each sentence."""
    right, gold, predicted = (sum(column) for column in zip(*counts, strict=True))
    return 200 * right / (gold + predicted)


def ner_line(inputs: str, right: dict[int, Sequence[int]], **changes: Any) -> dict[str, Any]:
    """A line of the task ner: `right` holds, for each seed, how many of the two entities of each sentence are right."""
    counts = [[[number, 2, 2] for number in numbers] for numbers in right.values()]
    scores = [entity_f1(one) for one in counts]
    items = len(counts[0])
    line = {
        "task": "ner",
        "dataset": "novels",
        "inputs": inputs,
        "metric": "entity F1",
        "item": "sentences",
        "split": "test",
        "data": {
            "train": {"novels/train.conll": 100},
            "dev": {"novels/dev.conll": 5},
            "test": {"novels/test.conll": items},
        },
        "fingerprints": {"train": ["f1"], "dev": ["f2"], "test": ["f3"]},
        "reader": {"column": -1},
        "settings": SETTINGS,
        "preset": "small",
        "device": "cpu",
        "threads": 1,
        "elmoc": "1.0",
        "features": {"file": "runs/small.h5", "model": "aaaa1111bbbb2222", "word_vectors": "v1", "layers": ["0", "1"]},
        "vectors": {"origin": "runs/lm.bin", "fingerprint": "v1", "size": 300},
        "seeds": list(right),
        "scores": scores,
        "figures": {"entity F1": scores, "entity precision": scores, "entity recall": scores},
        "items": items,
        "counts": counts,
        "dev_scores": scores,
        "best_epochs": [1 for _ in right],
        "epochs": [2 for _ in right],
        "curves": [[] for _ in right],
        "seconds": [60.0 + seed for seed in right],
        "examples_per_second": [800.0 for _ in right],
        "mixes": [None if inputs == "vectors" else [0.25, 0.75, 1.0 + seed] for seed in right],
    }
    without = {"vectors": "features", "features": "vectors"}.get(inputs)
    if without:
        line[without] = None
    return line | changes


def write_lines(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def rows_of(folder: Path, *lines: dict[str, Any], resamples: int = 200) -> list[Row]:
    """The rows of the table of these lines."""
    return compared_rows([write_lines(folder / "lines.jsonl", *lines)], resamples=resamples)
