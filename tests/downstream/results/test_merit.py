"""The figure of merit: by hand."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from downstream.results.merit import Merit, Share, figure_of_merit, rows_of_encoders
from elmoc.errors import InputError
from tests.downstream.results.result_lines import BETTER, SETTINGS, WORSE, ner_line, rows_of


def accuracy(dataset: str, inputs: str, right: np.ndarray) -> dict[str, object]:
    """A line of results on pairs: `right`, bool [seeds, N]."""
    seeds, items = right.shape
    scores = [100 * float(row.mean()) for row in right]
    counts = np.stack([right, np.ones_like(right)], axis=2).astype(int).tolist()
    line = ner_line(inputs, {seed + 1: [0] for seed in range(seeds)})
    line |= {"task": "snli", "dataset": dataset, "metric": "accuracy", "items": items, "counts": counts}
    return line | {"scores": scores, "figures": {"accuracy": scores}}


def merit_of(answers: Sequence[tuple[np.ndarray, np.ndarray]], resamples: int = 1000) -> Merit:
    """Of a set of data for each pair of answers, by vectors and by both."""
    lines = [
        accuracy(f"d{place}", kind, right)
        for place, sides in enumerate(answers)
        for kind, right in zip(("vectors", "both"), sides, strict=True)
    ]
    with TemporaryDirectory() as folder:
        merit = figure_of_merit(rows_of(Path(folder), *lines, resamples=resamples))
    assert merit is not None
    return merit


def test_a_case_by_hand() -> None:
    merit = Merit(
        [
            Share("snli", "a", gain=2.2, paper=1.1, items_error=0.33, seeds_error=0.44),
            Share("coref", "b", gain=2.0, paper=4.0, items_error=0.0, seeds_error=1.2),
        ]
    )
    assert merit.value == pytest.approx((2 + 0.5) / 2)
    assert merit.items_error == pytest.approx(0.3 / 2)
    assert merit.seeds_error == pytest.approx((0.4**2 + 0.3**2) ** 0.5 / 2)
    assert merit.error == pytest.approx((0.3**2 + 0.5**2) ** 0.5 / 2)


def test_errors_by_items_and_by_seeds() -> None:
    vectors = np.array([[True] * 50 + [False] * 50, [True] * 60 + [False] * 40])  # 50 and 60 %
    both = np.array([[True] * 70 + [False] * 30, [True] * 72 + [False] * 28, [True] * 74 + [False] * 26])
    merit = merit_of([(vectors, both)], resamples=20_000)
    (share,) = merit.shares
    assert merit.value == pytest.approx((72 - 55) / 1.1)
    variance = (2 * 5**2 + 2 * 2**2) / 3  # of a run, pooled: 1 + 2 degrees of freedom
    assert share.seeds_error == pytest.approx((variance * (1 / 2 + 1 / 3)) ** 0.5)
    gains = both.mean(axis=0) - vectors.mean(axis=0)  # of each item, over seeds
    assert share.items_error == pytest.approx(100 * gains.std() / 10, rel=0.03)


def test_one_seed_leaves_the_error_by_seeds_open_and_another_side_may_fill_it() -> None:
    one, two = np.array([[True, False] * 20]), np.array([[True] * 40, [True, True, True, False] * 10])
    assert merit_of([(one, ~one)]).by_seeds == "unknown"
    assert "unknown by seeds" in str(merit_of([(two, two), (one, ~one)]))
    merit = merit_of([(two, one)])
    assert merit.shares[0].seeds_error == pytest.approx((2 * 12.5**2 * (1 + 1 / 2)) ** 0.5)


def suite_lines(words: int, model: str, right: dict[int, list[int]]) -> list[dict[str, object]]:
    features = {"file": "x.h5", "directory": f"runs/{model}", "model": model, "word_vectors": "v1", "layers": ["0"]}
    tuned = {"settings": SETTINGS | {"learning_rate": 0.1}, "compared_as": "tuned"}
    return [ner_line("both", right, features=features | {"training_words": words}, **tuned)]


def test_a_difference_of_encoders_is_paired_and_without_the_baseline_they_share(tmp_path: Path) -> None:
    baseline = ner_line("vectors", WORSE, compared_as="tuned")
    better = {1: [2, 1, 0, 2] * 5, 2: [2, 2, 0, 2] * 5, 3: [2, 2, 0, 1] * 5}  # entity F1 62.5, 75, 62.5
    lines = [baseline, *suite_lines(1, "m1", {1: WORSE[1]}), *suite_lines(2, "m2", better)]
    rows = rows_of_encoders(rows_of(tmp_path, *lines, resamples=4000))
    difference = figure_of_merit(rows["m2"], less=rows["m1"])
    assert difference is not None
    assert difference.value == pytest.approx((200 / 3 - 37.5) / 1.3)
    variance = (2 * 6.25**2 + 2 * (200 / 3 - 62.5) ** 2 + (75 - 200 / 3) ** 2) / 3  # of a run: 1 + 0 + 2 degrees
    assert difference.seeds_error == pytest.approx((variance * (1 + 1 / 3)) ** 0.5 / 1.3)
    gains = np.tile([0, 5 / 3 - 0, 0, 5 / 3 - 1], 5)  # of each item in right entities, of two, over seeds
    assert difference.items_error == pytest.approx(100 * gains.std() / 2 / 20**0.5 / 1.3, rel=0.05)
    alone = [merit for own in rows.values() if (merit := figure_of_merit(own))]
    assert difference.error < np.hypot(*(merit.error for merit in alone))
    same = figure_of_merit(rows["m1"], less=rows["m1"])
    assert same is not None
    assert (same.value, same.items_error) == (0, 0)


def test_data_that_would_count_twice_are_refused(tmp_path: Path) -> None:
    lines = [ner_line("vectors", {1: WORSE[1]}, compared_as="tuned"), *suite_lines(1, "m1", {1: BETTER[1]})]
    rows = rows_of(tmp_path, *lines, *(line | {"compared_as": "quick"} for line in lines))
    with pytest.raises(InputError, match="ner novels test"):
        figure_of_merit(rows)
