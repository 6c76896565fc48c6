"""Records of runs: every line of results gets into its file whole."""

import json
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from downstream.results.records import (
    append_result,
    encoder_identity,
    format_score,
    layer_names,
    mean_and_deviation,
    open_results,
    summary,
)
from elmoc.errors import InputError
from tests.downstream.results.result_lines import WORSE, ner_line


def test_mean_and_deviation_are_those_of_a_sample() -> None:
    assert mean_and_deviation([1.0, 2.0, 4.5]) == (2.5, pytest.approx(3.25**0.5))
    assert mean_and_deviation([7.0]) == (7.0, None)


@pytest.mark.parametrize(("mean", "deviation", "text"), [(52.306, 0.4, "52.31 ± 0.40"), (7.0, None, "7.00")])
def test_scores_are_printed_with_two_decimals(mean: float, deviation: float | None, text: str) -> None:
    assert format_score(mean, deviation) == text


def test_lines_are_added_to_a_file_in_a_folder_that_is_made(tmp_path: Path) -> None:
    path = tmp_path / "out" / "results.jsonl"
    open_results(path)
    assert path.read_bytes() == b""
    append_result(path, {"dataset": "Bücher"})
    open_results(path)
    append_result(path, {"dataset": "b"})
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["dataset"] for line in lines] == ["Bücher", "b"]


def test_a_name_of_a_compressed_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"results\.jsonl\.gz is not possible: .*give a name without \.gz"):
        open_results(tmp_path / "out" / "results.jsonl.gz")
    assert list(tmp_path.iterdir()) == []


def test_a_summary_gives_the_number_of_seeds_of_each_kind_where_they_differ() -> None:
    record = ner_line("vectors", WORSE)
    other = {"inputs": "both", "mean": 55.0, "deviation": None, "seeds": [3]}
    settings = record["settings"]
    text = summary(
        [
            record | {"mean": 50.0, "deviation": 1.25, "seeds": [1, 2]},
            record | {"inputs": "both", "mean": 53.5, "deviation": None, "seeds": [3]},
            record | other | {"settings": settings | {"mix_rate": 1.0}},
            record | other | {"settings": settings | {"hidden_size": 100}},
            record | other | {"fingerprints": {"test": ["f4"]}},
        ]
    )
    assert text.splitlines() == [
        "ner: entity F1 on test",
        "  vectors   50.00 ± 1.25    2 seeds",
        "  both      53.50           1 seed    gain +3.50",
        "  both      55.00           1 seed    gain +5.00",
        "  both      55.00           1 seed",
        "  both      55.00           1 seed",
    ], "no gain over word vectors that were trained in another way, or scored on other data"


def test_a_line_that_broke_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"task": "ner"}\n{"task": "sn')
    append_result(path, {"task": "srl"})
    assert path.read_text().splitlines() == ['{"task": "ner"}', '{"task": "sn', '{"task": "srl"}']


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


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    append_result(path, {"task": "ner"})
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(InputError, match=r"results\.jsonl could not be written, its disk .* is full"):
            append_result(path, {"counts": [1] * 1000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before


def test_lines_are_added_to_ordinary_files_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is no ordinary file: name a file"):
        open_results(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a directory: name a file"):
        open_results(tmp_path)


@pytest.mark.parametrize(
    ("layers", "names"), [(["0", "top"], ["0", "top"]), ([1, 2], ["1", "2"]), (3, ["3"]), ("top", ["top"]), (None, [])]
)
def test_layers_have_names_whatever_a_foreign_file_calls_so(layers: Any, names: list[str]) -> None:
    assert layer_names({"layers": layers}) == names
    assert layer_names({}) == []


def test_dumps_with_another_pooling_are_of_another_encoder() -> None:
    features = {"model": "aaaa", "word_vectors": "v1", "layers": ["0", "1"]}
    pooled = [encoder_identity(features | {"pooling": pooling}) for pooling in ("first", "last", "mean")]
    assert encoder_identity(features) == pooled[0], "which files of subwords did not say in earlier versions"
    assert len(set(pooled)) == 3


def test_encoders_of_other_tools_are_known_by_what_their_files_say() -> None:
    peer = {"file": "/a/peer.h5", "model_fingerprint": "aaaa", "layers": ["0"]}
    assert encoder_identity(peer) == encoder_identity(peer | {"file": "/b/renamed.h5"})
    assert encoder_identity(peer) != encoder_identity(peer | {"model_fingerprint": "bbbb"}), "it was trained again"
    foreign = {"file": "/a/theirs.h5", "file_size": 9, "file_time": 1}
    assert len({encoder_identity(foreign | change) for change in ({}, {"file_size": 8}, {"file_time": 2})}) == 3
