"""Lines of results: every line gets into its file whole, is read again, and is pooled with those of other seeds."""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from downstream.results.records import append_result, encoder_identity, read_results
from elmoc.errors import InputError
from elmoc.files.checksums import check_beside, checksum_path
from elmoc.files.writing import locked
from tests.downstream.results.result_lines import SETTINGS, ner_line, write_lines

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe
from downstream.results import records

RIGHT = {1: [2, 1, 0], 2: [2, 2, 0]}


def _append_many(path: Path, process: int) -> None:
    for number in range(20):
        append_result(path, {"process": process, "number": number, "counts": [process] * 20_000})


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(_append_many, [path] * 3, range(3)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted((line["process"], line["number"]) for line in lines) == [(p, n) for p in range(3) for n in range(20)]
    assert all(set(line["counts"]) == {line["process"]} for line in lines)


def test_no_line_is_lost_or_half_there_where_the_file_is_locked_or_the_disk_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_of_at_most: Callable[[int], None]
) -> None:
    path = tmp_path / "r.jsonl"
    append_result(path, {"file": "\udce9.h5"})  # a name that is not UTF-8
    monkeypatch.setattr(records, "LOCK_SECONDS", 0.1)
    with ThreadPoolExecutor(1) as other, locked(path), pytest.raises(InputError, match=r"r\.jsonl"):
        other.submit(append_result, path, {}).result()
    files_of_at_most(1000)
    with pytest.raises(OSError, match=r"File too large.*r\.jsonl"):
        append_result(path, {"counts": [1] * 1000})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"file": "\udce9.h5"}]


def test_results_have_a_checksum_and_none_are_added_to_damaged_ones(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    checksum_path(path).write_text("of an older file")
    for number in range(2):
        append_result(path, {"number": number})
        assert check_beside(path)
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    with pytest.raises(InputError, match=r"r\.jsonl is damaged"):
        run_probe("ner", ProbeData(train=[path]), InputOptions(vectors=["random:1:4"]), ProbeOptions(out=path))


def test_encoders_are_known_by_weights_options_and_of_other_tools_by_their_files() -> None:
    features = {"model": "aaaa", "word_vectors": "v1", "layers": ["0", "1"]}
    pooled = [encoder_identity(features | {"pooling": pooling}) for pooling in ("first", "last", "mean")]
    assert len({*pooled}) == 3
    assert encoder_identity(features | {"precision": "int8"}) not in pooled
    foreign = {"file": "/a/theirs.h5", "file_size": 9, "file_time": 1, "model": "bert"}
    assert len({encoder_identity(foreign | change) for change in ({}, {"file_size": 8}, {"file_time": 2})}) == 3


def test_seeds_of_several_runs_are_pooled_and_of_one_that_ran_twice_the_later_counts(tmp_path: Path) -> None:
    moved = ner_line("both", {3: [0, 1, 1], 2: [2, 2, 2]})
    moved["data"] = {
        split: {f"/elsewhere/{file}": size for file, size in files.items()} for split, files in moved["data"].items()
    }
    moved["features"] = moved["features"] | {"file": "/elsewhere/small.h5"}
    first = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT, note="unknown"), ner_line("vectors", RIGHT))
    results = read_results([first, write_lines(tmp_path / "b.jsonl", moved)])
    assert [(result.inputs, result.seeds) for result in results] == [("both", [1, 2, 3]), ("vectors", [1, 2])]
    assert results[0].scores == pytest.approx([50, 100, 100 / 3])
    np.testing.assert_array_equal(results[1].counts[1], [[2, 2, 2], [2, 2, 2], [0, 2, 2]])
    assert results[0].figures["entity recall"] == pytest.approx([50, 100, 100 / 3])
    assert results[0].mixes == [[0.25, 0.75, 2.0], [0.25, 0.75, 3.0], [0.25, 0.75, 4.0]]


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": "tweets"},
        {"settings": SETTINGS | {"hidden_size": 100}},
        {"fingerprints": {"train": ["other"], "dev": ["f2"], "test": ["f3"]}},
        {"reader": {"column": 2}},
        {"features": {"file": "runs/small.h5", "model": "cccc", "word_vectors": "v1", "layers": ["0", "1"]}},
        {"vectors": {"origin": "runs/lm.bin", "fingerprint": "v2", "size": 300}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_differs_is_not_pooled(tmp_path: Path, changes: dict[str, Any]) -> None:
    lines = ner_line("both", {1: [1, 1, 1]}), ner_line("both", {2: [1, 1, 1]}, **changes)
    results = read_results([write_lines(tmp_path / "a.jsonl", *lines)])
    assert [len(result.seeds) for result in results] == [1, 1]


@pytest.mark.parametrize("line", ['{"task": "ner", "da', "not json", "[" * 100_000, '{"task": NaN}', "[1, 2]", "{}"])
def test_damaged_lines_are_errors_with_their_place(tmp_path: Path, line: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", RIGHT))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError) as error:
        read_results([path])
    assert str(error.value).startswith(f"{path}, line 2 ")
