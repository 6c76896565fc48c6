"""The figure of merit: by hand, and where the truth is known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from downstream.__main__ import main
from downstream.results.comparison import compare
from downstream.results.curve import merits_by_words
from downstream.results.merit import Merit, Share, figure_of_merit, merit_difference, rows_of_encoders
from downstream.results.reading import Result
from downstream.results.records import LATER_SETTINGS
from downstream.results.row_names import NamedRow, name_rows
from downstream.results.table import compared_rows
from downstream.tasks.ner.task import TASK as NER
from downstream.tasks.snli.task import TASK as SNLI
from elmoc.errors import InputError
from tests.downstream.results.result_lines import BETTER, WORSE, ner_line, write_lines

TASKS = {"ner": lambda: NER, "snli": lambda: SNLI}


def accuracy(dataset: str, inputs: str, right: np.ndarray) -> Result:
    """Results on pairs: `right`, bool [seeds, N]."""
    seeds, items = right.shape
    scores = [100 * float(row.mean()) for row in right]
    counts = np.stack([right, np.ones_like(right)], axis=2).astype(np.float64)
    line = ner_line(inputs, {seed + 1: [0] for seed in range(seeds)})
    line |= {"task": "snli", "dataset": dataset, "metric": "accuracy", "items": items, "counts": counts}
    line["settings"] = LATER_SETTINGS | line["settings"]
    return Result(**line | {"scores": scores, "figures": {"accuracy": scores}}, origins=[dataset] * seeds)


def merit_of(answers: Sequence[tuple[np.ndarray, np.ndarray]], resamples: int = 1000) -> Merit:
    rows = [
        compare(
            {
                "vectors": accuracy(f"d{place}", "vectors", vectors),
                "both": accuracy(f"d{place}", "both", both),
            },
            metrics=SNLI.metrics,
            resamples=resamples,
        )
        for place, (vectors, both) in enumerate(answers)
    ]
    merit = figure_of_merit(name_rows(rows, given={}))
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
    assert merit_of([(one, ~one)]).unknown == ["d0 test"]
    assert "by items, by seeds not known, of one seed each; a gain divided by the paper's" in str(
        merit_of([(one, ~one)])
    )
    some = str(merit_of([(two, two), (one, ~one)]))
    assert "by seeds, which one seed leaves open for d1 test; mean of 2 gains, each divided" in some
    merit = merit_of([(two, one)])
    assert merit.unknown == []
    assert merit.shares[0].seeds_error == pytest.approx((2 * 12.5**2 * (1 + 1 / 2)) ** 0.5)


def test_where_the_truth_is_known() -> None:
    """Items of unequal difficulty, runs of unequal skill: the stated error is that of repeating it all."""
    generator = np.random.default_rng(3)
    items, seeds, truth, spread = 150, (3, 2), (0.05, 0.10), 0.04
    values, errors = [], []
    for _ in range(150):
        answers = []
        for gain in truth:
            hard = generator.uniform(-0.3, 0.3, items)
            sides = []
            for skill, runs in ((0.5, seeds[0]), (0.5 + gain, seeds[1])):
                chances = skill + generator.normal(0, spread, (runs, 1)) + hard
                sides.append(generator.uniform(size=(runs, items)) < chances)
            answers.append((sides[0], sides[1]))
        merit = merit_of(answers, resamples=100)
        values.append(merit.value)
        errors.append(merit.error)
    assert np.mean(values) == pytest.approx(100 * np.mean(truth) / 1.1, abs=3 * np.std(values) / 150**0.5)
    ratio = (np.mean(np.square(errors)) / np.var(values)) ** 0.5
    assert 0.85 < ratio < 1.35, "by items, the luck of each answer counts a second time, so that it is rather too large"


def rows_of(tmp_path: Path, *lines: dict[str, object], resamples: int = 4000) -> dict[str, list[NamedRow]]:
    """Encoder → the rows that the table makes of lines of results."""
    rows, _ = compared_rows([write_lines(tmp_path / "lines.jsonl", *lines)], TASKS, resamples=resamples, encoders={})
    return rows_of_encoders(rows)


def test_a_difference_of_encoders_is_paired_and_without_the_baseline_they_share(tmp_path: Path) -> None:
    baseline = ner_line("vectors", WORSE, compared_as="tuned")
    better = {1: [2, 1, 0, 2] * 5, 2: [2, 2, 0, 2] * 5, 3: [2, 2, 0, 1] * 5}  # entity F1 62.5, 75, 62.5
    rows = rows_of(tmp_path, baseline, *suite_lines(1, "m1", {1: WORSE[1]}), *suite_lines(2, "m2", better))
    difference = merit_difference(rows["m2"], rows["m1"])
    assert difference is not None
    assert difference.value == pytest.approx((200 / 3 - 37.5) / 1.3)
    variance = (2 * 6.25**2 + 2 * (200 / 3 - 62.5) ** 2 + (75 - 200 / 3) ** 2) / 3  # of a run: 1 + 0 + 2 degrees
    assert difference.seeds_error == pytest.approx((variance * (1 + 1 / 3)) ** 0.5 / 1.3)
    gains = np.tile([0, 5 / 3 - 0, 0, 5 / 3 - 1], 5)  # of each item in right entities, of two, over seeds
    assert difference.items_error == pytest.approx(100 * gains.std() / 2 / 20**0.5 / 1.3, rel=0.05)
    alone = [merit for own in rows.values() if (merit := figure_of_merit(own))]
    assert difference.error < np.hypot(*(merit.error for merit in alone))
    same = merit_difference(rows["m1"], rows["m1"])
    assert same is not None
    assert (same.value, same.items_error) == (0, 0)


def test_a_difference_of_encoders_with_baselines_of_their_own_has_their_errors_too(tmp_path: Path) -> None:
    vectors = {"origin": "other.bin", "fingerprint": "other"}
    own = ner_line("vectors", {1: WORSE[1], 2: WORSE[1]}, compared_as="tuned", vectors=vectors)
    lines = [*suite_lines(1, "m1", {1: WORSE[1]}), *suite_lines(2, "m2", {1: BETTER[1]})]
    lines[1]["vectors"] = vectors
    rows = rows_of(tmp_path, ner_line("vectors", WORSE, compared_as="tuned"), own, *lines, resamples=200)
    difference = merit_difference(rows["m2"], rows["m1"])
    assert difference is not None
    assert difference.value == pytest.approx((25 - (37.5 - 31.25)) / 1.3)
    variance = 2 * 6.25**2 / 2  # of a run: 1 + 1 degrees
    assert difference.seeds_error == pytest.approx((variance * (1 + 1 + 1 / 2 + 1 / 2)) ** 0.5 / 1.3)


def test_differences_are_to_the_first_encoder_and_say_what_is_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [ner_line("vectors", {1: WORSE[1]}, compared_as="tuned")]
    for model, right in (("m1", WORSE[2]), ("m2", BETTER[1]), ("m3", BETTER[2])):
        lines += suite_lines(1, model, {1: right})
    path = write_lines(tmp_path / "lines.jsonl", *lines)
    assert main(["table", str(path), "--resamples", "100", "--merit"]) == 0
    table = capsys.readouterr().out.split("Figure of merit less that of m1, on the data sets of both")[1].splitlines()
    assert [line.split()[:3] for line in table[-20:] if line.startswith("m")][:2] == [
        ["m2", "1", f"+{37.5 / 1.3:.2f}"],
        ["m3", "1", f"+{50 / 1.3:.2f}"],
    ]
    assert [line.split()[-1] for line in table if line.startswith("m")][:2] == ["unknown", "unknown"]
    write_lines(path, lines[0], *suite_lines(1, "m1", {1: WORSE[2]}))
    assert main(["table", str(path), "--resamples", "100", "--merit"]) == 0
    assert "less that of" not in capsys.readouterr().out


def test_the_first_encoder_is_that_of_the_first_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it has no results of the first task."""
    vectors = ner_line("vectors", {1: WORSE[1]}, compared_as="tuned")
    pairs = {"task": "snli", "metric": "accuracy", "figures": {}, "counts": [[[1, 1]] * 20], "scores": [100.0]}
    (m1,), (m2,) = suite_lines(1, "m1", {1: WORSE[2]}), suite_lines(1, "m2", {1: BETTER[1]})
    first = write_lines(tmp_path / "first.jsonl", vectors, vectors | pairs, m1)
    second = write_lines(tmp_path / "second.jsonl", vectors, vectors | pairs, m2, m2 | pairs)
    assert main(["table", str(first), str(second), "--resamples", "100", "--merit"]) == 0
    assert "Figure of merit less that of m1, " in capsys.readouterr().out
    assert main(["table", str(second), str(first), "--resamples", "100", "--merit"]) == 0
    assert "Figure of merit less that of m2, " in capsys.readouterr().out


def test_data_that_count_twice_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (m1,) = suite_lines(1, "m1", {1: BETTER[1]})
    lines = [ner_line("vectors", {1: WORSE[1]}, compared_as="tuned"), m1]
    path = write_lines(tmp_path / "lines.jsonl", *lines)
    assert main(["table", str(path), "--resamples", "100", "--merit"]) == 0
    assert "more than once" not in capsys.readouterr().out
    path = write_lines(tmp_path / "lines.jsonl", *lines, *(line | {"compared_as": "quick"} for line in lines))
    assert main(["table", str(path), "--resamples", "100", "--curve", str(tmp_path / "curve.png")]) == 0
    assert "WARNING: the figure of merit of m1 counts ner novels test more than once" in " ".join(
        capsys.readouterr().out.split()
    )


def suite_lines(words: int, model: str, right: dict[int, list[int]]) -> list[dict[str, object]]:
    features = {"file": "x.h5", "directory": f"runs/{model}", "model": model, "word_vectors": "v1", "layers": ["0"]}
    features |= {"training_words": words}
    tuned = {"settings": {"learning_rate": 0.1, "match_vectors": True, "mix_rate": 10.0}, "compared_as": "tuned"}
    return [ner_line("both", right, features=features, **tuned)]


def test_settings_may_differ_where_a_suite_says_what_is_compared(tmp_path: Path) -> None:
    baseline = ner_line("vectors", WORSE, compared_as="tuned")
    path = write_lines(tmp_path / "lines.jsonl", baseline, *suite_lines(1000, "m1", BETTER))
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    assert len(rows) == 1
    assert rows[0].gains["both"].points == 37.5
    path = write_lines(tmp_path / "other.jsonl", baseline | {"compared_as": None}, *suite_lines(1000, "m1", BETTER))
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    assert all(not row.gains for row in rows)


def test_the_curve_has_the_encoders_in_the_order_of_their_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = ner_line("vectors", WORSE, compared_as="tuned")
    lines = [baseline, *suite_lines(60_000, "m2", BETTER), *suite_lines(5_000, "m1", {1: BETTER[1]})]
    path = write_lines(tmp_path / "lines.jsonl", *lines)
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    points = merits_by_words(rows)
    assert [words for words, _ in points] == [5_000, 60_000]
    assert [round(merit.value, 3) for _, merit in points] == [round((62.5 - 31.25) / 1.3, 3), round(37.5 / 1.3, 3)]
    picture = tmp_path / "curve.png"
    assert main(["table", str(path), "--resamples", "100", "--curve", str(picture), "--merit"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert "Figure of merit: mean of (both − vectors) / the paper's gain" in out
    assert "60,000" in out


def test_the_curve_is_of_data_that_all_have_whatever_vectors_and_data_are_called(tmp_path: Path) -> None:
    lines = []
    for words, folder in ((5_000, "a"), (60_000, "b")):
        vectors = {"origin": f"{folder}/lm.bin", "fingerprint": folder, "size": 300}
        of_suite = {"vectors": vectors, "compared_as": "tuned", "dataset": r"A$ and $\x$"}
        lines.append(ner_line("vectors", WORSE, **of_suite))
        lines += [line | of_suite for line in suite_lines(words, f"m{words}", BETTER)]
    path = write_lines(tmp_path / "lines.jsonl", *lines)
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    assert [row.word_vectors for row in rows] == ["lm.bin (1)", "lm.bin (2)"]
    assert [words for words, _ in merits_by_words(rows)] == [5_000, 60_000]
    assert main(["table", str(path), "--resamples", "100", "--curve", str(tmp_path / "curve.png")]) == 0


def test_encoders_that_are_called_the_same_have_figures_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [ner_line("vectors", WORSE)]
    for time, right in ((1, BETTER), (2, WORSE)):  # the file was written again
        lines.append(ner_line("both", right, features={"file": "theirs.h5", "file_size": 9, "file_time": time}))
    path = write_lines(tmp_path / "lines.jsonl", *lines)
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    assert len(rows_of_encoders(rows)) == 2
    assert main(["table", str(path), "--resamples", "100", "--merit"]) == 0
    assert "Figure of merit less that of theirs theirs.h5 (1)" in capsys.readouterr().out


def test_a_figure_that_there_is_not_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "lines.jsonl", ner_line("both", BETTER))
    assert main(["table", str(path), "--resamples", "100", "--merit"]) == 0
    assert "there is none without results of both and of vectors" in " ".join(capsys.readouterr().out.split())


def test_a_curve_needs_encoders_that_say_what_they_have_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "lines.jsonl", ner_line("vectors", WORSE), ner_line("both", BETTER))
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    with pytest.raises(InputError, match="no encoder with a gain says how many words it has read"):
        merits_by_words(rows)


def test_data_of_two_tasks_may_have_one_name(tmp_path: Path) -> None:
    pairs = {"task": "snli", "metric": "accuracy", "figures": {}, "counts": [[[1, 1]] * 20], "scores": [100.0]}
    (other,) = suite_lines(2, "m2", {1: WORSE[1]})
    lines = [ner_line("vectors", WORSE, compared_as="tuned"), *suite_lines(1, "m1", BETTER), other | pairs]
    lines.append(ner_line("vectors", {1: WORSE[1]}, compared_as="tuned") | pairs)
    path = write_lines(tmp_path / "lines.jsonl", *lines)
    rows, _ = compared_rows([path], TASKS, resamples=100, encoders={})
    with pytest.raises(InputError, match="no set of data in common"):
        merits_by_words(rows)
