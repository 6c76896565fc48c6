"""Lines of results: read whole, pooled by what they have in common, and refused where they are damaged."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from downstream.results.reading import read_results
from elmoc.errors import InputError
from elmoc.files.records import write_json
from tests.downstream.results.result_lines import ner_line, write_lines

RIGHT = {1: [2, 1, 0], 2: [2, 2, 0]}


def test_a_line_becomes_a_result(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    (result,), notes = read_results([path])
    assert notes == []
    assert (result.task, result.dataset, result.inputs, result.split) == ("ner", "novels", "both", "test")
    assert result.seeds == [1, 2]
    assert result.scores == pytest.approx([50, 200 / 3])
    assert result.seconds == [61, 62]
    assert result.figures["entity recall"][1] == pytest.approx(200 / 3)
    np.testing.assert_array_equal(result.counts[1], [[2, 2, 2], [2, 2, 2], [0, 2, 2]])


def test_blank_lines_and_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(("\n" + json.dumps(ner_line("vectors", RIGHT)) + "\n\n").encode()))
    assert len(read_results([path])[0]) == 1


def test_seeds_of_several_runs_are_pooled(tmp_path: Path) -> None:
    moved = ner_line("both", {3: [0, 1, 1], 2: [2, 2, 2]})
    moved["data"] = {
        split: {f"/elsewhere/{file}": size for file, size in files.items()} for split, files in moved["data"].items()
    }
    moved["features"]["file"] = "/elsewhere/small.h5"
    first = write_lines(tmp_path / "a.jsonl", ner_line("both", {1: [2, 1, 0]}), ner_line("vectors", RIGHT))
    second = write_lines(tmp_path / "b.jsonl", moved)
    results, notes = read_results([first, second])
    assert notes == []
    assert [(result.inputs, result.seeds) for result in results] == [
        ("both", [1, 2, 3]),
        ("vectors", [1, 2]),
    ]
    assert results[0].scores == pytest.approx([50, 100, 100 / 3])


def test_of_one_seed_that_ran_twice_the_later_counts(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    second = write_lines(tmp_path / "b.jsonl", ner_line("both", {2: [0, 0, 1]}))
    (result,), (note,) = read_results([first, second])
    assert result.scores == pytest.approx([50, 100 / 6])
    assert note == f"ner novels, both, seed 2: {second}, line 1 replaces {first}, line 1 (16.67 for 66.67)"
    (result,), _ = read_results([second, first])
    assert result.scores[1] == pytest.approx(200 / 3)


def test_metrics_that_only_some_of_the_seeds_have_are_left_out(tmp_path: Path) -> None:
    older = ner_line("both", {1: [2, 1, 0]}, figures={"entity F1": [50.0], "other": [1.0]})
    (result,), _ = read_results([write_lines(tmp_path / "a.jsonl", older, ner_line("both", {2: [2, 2, 0]}))])
    assert result.figures == {"entity F1": [50.0, pytest.approx(200 / 3)]}


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    monkeypatch.chdir(tmp_path)
    assert read_results([path, Path("a.jsonl")])[1] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": "tweets"},
        {"split": "dev", "items": 3},
        {"settings": {"learning_rate": 0.001, "hidden_size": 100}},
        {"fingerprints": {"train": ["other"], "dev": ["f2"], "test": ["f3"]}},
        {"fingerprints": {"train": ["f1"], "dev": ["f2"], "test": ["f4", "f3"]}},
        {"reader": {"column": 2}},
        {"features": {"file": "runs/small.h5", "model": "cccc", "word_vectors": "v1", "layers": ["0", "1"]}},
        {"features": {"file": "runs/small.h5", "model": "aaaa1111bbbb2222", "word_vectors": "v1", "layers": ["top"]}},
        {"vectors": {"origin": "runs/lm.bin", "fingerprint": "v2", "size": 300}},
        {"task": "srl"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_differs_is_not_pooled(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = write_lines(
        tmp_path / "a.jsonl", ner_line("both", {1: [1, 1, 1]}), ner_line("both", {2: [1, 1, 1]}, **changes)
    )
    results, notes = read_results([path])
    assert [len(result.seeds) for result in results] == [1, 1]
    assert notes == []


def test_settings_of_one_suite_that_differ_are_an_error(tmp_path: Path) -> None:
    """In lines of versions that told suites by the name of their preset."""
    lines = ner_line("both", {1: [1, 1]}, compared_as="s"), ner_line("vectors", {1: [1, 1]}, compared_as="s")
    features = {**lines[0]["features"], "model": "another"}
    settings = {"learning_rate": 0.001, "hidden_size": 999}
    other = ner_line("both", {2: [1, 1]}, compared_as="s", settings=settings, features=features)
    path = write_lines(tmp_path / "a.jsonl", *lines, other)
    with pytest.raises(
        InputError,
        match=r"line 3 and .*line 1 count as results of one suite, but differ in hidden_size \(999 and 200\)",
    ):
        read_results([path])


def test_all_inputs_of_an_older_suite_are_compared_with_a_newer_one(tmp_path: Path) -> None:
    """Also those that the newer one was not run for; with other settings they are of another suite."""
    old = [ner_line(kind, {1: [1, 1]}, compared_as="s") for kind in ("vectors", "features", "both")]
    more = {"compared_as": "t", "compared_before_as": "s"}
    new = [ner_line(kind, {2: [1, 0]}, **more) for kind in ("vectors", "both")]
    results, _ = read_results([write_lines(tmp_path / "a.jsonl", *old, *new)])
    assert {(each.inputs, each.compared_as) for each in results} == {
        (kind, "t") for kind in ("vectors", "features", "both")
    }
    settings = {"learning_rate": 0.001, "hidden_size": 999}
    others = [ner_line(kind, {1: [1, 1]}, compared_as="s", settings=settings) for kind in ("vectors", "features")]
    results, _ = read_results([write_lines(tmp_path / "b.jsonl", *others, *new)])
    assert {(each.inputs, each.compared_as) for each in results} == {
        ("vectors", "s"),
        ("features", "s"),
        ("vectors", "t"),
        ("both", "t"),
    }


def test_test_files_in_another_order_are_not_the_same_items(tmp_path: Path) -> None:
    orders = [{"train": ["f1"], "dev": ["f2"], "test": order} for order in (["a", "b"], ["b", "a"])]
    lines = [ner_line("both", {seed: [1, 0]}, fingerprints=one) for seed, one in enumerate(orders)]
    results, _ = read_results([write_lines(tmp_path / "a.jsonl", *lines)])
    assert len({result.comparable for result in results}) == 2


def test_foreign_feature_files_are_told_apart_by_their_names(tmp_path: Path) -> None:
    lines = [ner_line("features", {1: [1, 1]}, features={"file": name}) for name in ("a.h5", "b.h5", "a.h5")]
    results, _ = read_results([write_lines(tmp_path / "a.jsonl", *lines)])
    assert [result.encoder for result in results] == ["a.h5", "b.h5"]


def test_features_of_a_file_and_of_a_model_are_the_same_kind(tmp_path: Path) -> None:
    lines = ner_line("features", {1: [1, 1]}), ner_line("model", {2: [1, 2]})
    (result,), _ = read_results([write_lines(tmp_path / "a.jsonl", *lines)])
    assert (result.inputs, result.seeds) == ("features", [1, 2])


def test_other_items_on_the_same_data_are_an_error(tmp_path: Path) -> None:
    other = ner_line("both", {2: [1, 1]})
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", {1: [1, 1, 1]}), other)
    with pytest.raises(
        InputError, match=r"line 2 has 2 items with 3 counts each, but .*line 1.*has 3 items with 3 counts"
    ):
        read_results([path])


def test_no_file_and_no_lines_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_results([tmp_path / "missing.jsonl"])
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(InputError, match=r"there are no results in .*empty.jsonl: .*--results"):
        read_results([tmp_path / "empty.jsonl"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"task": "ner", "da', "line 2 is not valid JSON"),
        ("not json", "line 2 is not valid JSON"),
        ("[" * 100_000, "line 2 is nested too deeply"),
        ('{"task": NaN}', "line 2 is not valid JSON"),
        ('{"items": ' + "1" * 5000 + "}", "line 2 is not valid JSON"),
        ("[1, 2]", "line 2: the whole must be of type object, not [1, 2]"),
        ('{"kind": "evaluation", "updates": 3}', "line 2: the field task is missing"),
    ],
)
def test_damaged_lines_are_errors_with_their_place(tmp_path: Path, line: str, message: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError) as error:
        read_results([path])
    assert str(error.value).startswith(f"{path}, ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"task": None}, "task"),
        ({"dataset": ""}, "dataset"),
        ({"inputs": "glove"}, "inputs"),
        ({"inputs": ["both"]}, "inputs"),
        ({"data": {"test": 3}}, "data"),
        ({"data": {"train": {"a": 1}}}, "data"),
        ({"fingerprints": {"test": "f3"}}, "fingerprints"),
        ({"fingerprints": {"test": ["f3"]}}, "fingerprints"),
        ({"items": 10**400}, "items"),
        ({"inputs": "a" * 100_000}, "inputs"),
        ({"split": "a" * 100_000}, "data"),
        ({"figures": {"a" * 100_000: [50.0]}}, "a{79}"),
        ({"reader": None}, "reader"),
        ({"item": ""}, "item"),
        ({"settings": []}, "settings"),
        ({"features": None}, "features"),
        ({"features": "F.h5"}, "features"),
        ({"vectors": {"origin": "lm.bin"}}, "vectors"),
        ({"inputs": "features"}, "vectors"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [1, 2.5]}, "seeds"),
        ({"seeds": [True, 2]}, "seeds"),
        ({"scores": [50.0]}, "scores"),
        ({"scores": [50.0, 1e300]}, "scores"),
        ({"scores": [50.0, "66"]}, "scores"),
        ({"figures": {"entity F1": [50.0]}}, "entity F1"),
        ({"seconds": [1.0, 2.0, 3.0]}, "seconds"),
        ({"examples_per_second": None}, "examples_per_second"),
        ({"mixes": [[0.5, 0.5, 1.0]]}, "mixes"),
        ({"mixes": [[0.5, 0.5, 1.0], None]}, "mixes"),
        ({"mixes": [[0.5, 0.5, 1.0], [1.0]]}, "mixes"),
        ({"items": 4}, "counts"),
        ({"items": 0}, "items"),
        ({"counts": 3}, "counts"),
        ({"counts": []}, "counts"),
        ({"counts": [[[2, 2, 2]] * 3]}, "counts"),
        ({"counts": [[[2, 2, 2]] * 3, [[2, 2, 2]] * 2]}, "counts"),
        ({"counts": [[[2, 2, 2]] * 3, [[2, 2, 2], [2], [2, 2, 2]]]}, "counts"),
        ({"counts": [[[2, 2, 2]] * 3, [["2", "x", "2"]] * 3]}, "counts"),
        ({"counts": [[[]] * 3] * 2}, "counts"),
        ({"counts": [[["2", "2", "2"]] * 3] * 2}, "counts"),
        ({"settings": {"a": {"b": 1}}}, "settings"),
        ({"features": {"layers": [[[[1]]]]}}, "features"),
        ({"dataset": "a\0b"}, "dataset"),
    ],
    ids=str,
)
def test_wrong_fields_are_errors_that_name_them(tmp_path: Path, changes: dict[str, Any], field: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT), ner_line("both", RIGHT) | changes)
    with pytest.raises(InputError) as error:
        read_results([path])
    assert str(error.value).startswith(f"{path}, line 2: ")
    assert re.match(rf"(the field )?{field}\b", str(error.value).removeprefix(f"{path}, line 2: "))
    assert str(error.value).endswith(": run the probe again and remove that line")
    assert len(str(error.value)) < 500
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("field", ["task", "counts", "figures", "unit", "preset", "dataset", "vectors"])
def test_lines_of_other_versions_are_errors(tmp_path: Path, field: str) -> None:
    line = ner_line("both", RIGHT)
    del line[field]
    with pytest.raises(
        InputError, match=rf"line 1: the field {field} is missing: run the probe again and remove that line$"
    ):
        read_results([write_lines(tmp_path / "a.jsonl", line)])


def test_the_folder_or_the_report_of_a_suite_names_its_results(tmp_path: Path) -> None:
    report = tmp_path / "suite.json"
    write_json(report, {"suite": "x"})
    for path in (tmp_path, report):
        with pytest.raises(InputError, match=r"(is a folder|not a result on each line): give a file that `--results`"):
            read_results([path])
    results = write_lines(tmp_path / "results.jsonl", ner_line("both", RIGHT))
    for path in (tmp_path, report):
        with pytest.raises(InputError, match=rf"{path} .*: give {results}$"):
            read_results([path])


@pytest.mark.parametrize("cut", [1, 40, -30])
def test_a_last_line_that_broke_off_is_left_out_with_a_note(tmp_path: Path, cut: int) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT), ner_line("vectors", RIGHT, dataset="Bücher"))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:cut])
    results, notes = read_results([path])
    assert [result.inputs for result in results] == ["both"]
    assert notes == [f"{path}, line 2 is left out: it is not whole, a run was stopped while it was written"]
    path.write_bytes(first + second[:cut] + b"\n" + second)
    with pytest.raises(InputError, match=r"line 2 is not valid JSON .*: remove that line"):
        read_results([path])


def test_a_last_line_that_broke_off_within_a_character_is_left_out(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    path.write_bytes(path.read_bytes() + '{"dataset": "ü'.encode()[:-1])
    assert [len(each) for each in read_results([path])] == [1, 1]


def test_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT), ner_line("vectors", RIGHT))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    results, notes = read_results([path])
    assert ([result.inputs for result in results], notes) == (["both", "vectors"], [])


def test_fields_that_other_versions_add_are_ignored(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT, note="of another version"))
    assert len(read_results([path])[0]) == 1


def test_a_link_that_leads_to_itself_is_one_sentence(tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    lines = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    assert "loop: Too many levels of symbolic links: its links lead in a circle" in fails("table", tmp_path / "loop")
    for option in ("--text", "--json"):
        fails("table", lines, option, tmp_path / "loop" / "out")
