"""Saved probes: kept, read again, and scored on other data."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from downstream.__main__ import main
from downstream.probe.experiment import TRAINING_FIELDS
from elmoc.__main__ import main as dump
from tests.downstream.conftest import TEN_SENTENCES, columns, words_of, write_random_features
from tests.downstream.probe.conftest import TINY


def as_version_2(probe: Path) -> None:
    """Make of a saved probe what earlier versions wrote, without a checksum of the weights."""
    content = json.loads((probe / "probe.json").read_text())
    del content["weights"]
    (probe / "probe.json").write_text(json.dumps(content | {"version": 2}))


def test_a_saved_probe_scores_as_it_did_when_it_was_trained(
    tmp_path: Path, ten: Path, features: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    vectors, both = trained("--seeds", "2", "--predictions", tmp_path / "first")
    again, results = tmp_path / "again", tmp_path / "evaluated.jsonl"
    probes = [tmp_path / "saved" / f"{kind}.seed{seed}" for kind in ("vectors", "both") for seed in (1, 2)]
    arguments = ["ner", "--evaluate-only", *probes, "--test", ten, "--features", features, "--vectors", "random:1:12"]
    assert main([*map(str, arguments), "--predictions", str(again), "--results", str(results)]) == 0
    evaluated = [json.loads(line) for line in results.read_text().splitlines()]
    for record, before in zip(evaluated, (vectors, both), strict=True):
        for name in (
            "inputs",
            "seeds",
            "scores",
            "figures",
            "counts",
            "mean",
            "deviation",
            "settings",
            *TRAINING_FIELDS,
        ):
            assert record[name] == before[name], name
        assert record["split"] == "test"
        assert record["data"] == before["data"] | {"test": {str(ten): 10}}
    for kind, seed in (("vectors", 1), ("both", 2)):
        written = (again / f"ner.{kind}.seed{seed}.test.conll").read_bytes()
        assert written == (tmp_path / "first" / f"ner.{kind}.seed{seed}.dev.conll").read_bytes()


def test_other_data_is_scored_with_the_label_set_of_training(
    tmp_path: Path, trained: Callable[..., list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    trained("--seeds", "1", "--inputs", "vectors")
    other = tmp_path / "other.conll"
    other.write_text(columns("Ada/B-PER met/O Zeus/B-GOD"))
    probe = tmp_path / "saved" / "vectors.seed1"
    arguments = ["ner", "--evaluate-only", probe, "--test", other, "--vectors", "random:1:12"]
    assert main([str(one) for one in arguments]) == 0
    assert "ner: entity F1 on test, 1 seed" in capsys.readouterr().out


def test_other_data_is_read_as_the_data_of_training_was(
    tmp_path: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    two_columns, results = tmp_path / "two.conll", tmp_path / "results.jsonl"
    lines = columns().splitlines()
    two_columns.write_text("".join(f"{line}\tO\n" if line else "\n" for line in lines))
    (line,) = trained(
        "--seeds", "1", "--inputs", "vectors", "--train", two_columns, "--dev", two_columns, "--column", "1"
    )
    probe = tmp_path / "saved" / "vectors.seed1"
    score = ["ner", "--evaluate-only", probe, "--test", two_columns, "--vectors", "random:1:12", "--results", results]
    results.unlink()
    assert main([*map(str, score)]) == 0
    scored = json.loads(results.read_text())
    assert (scored["reader"], scored["scores"]) == ({"column": 1}, line["scores"])
    assert main([*map(str, score), "--column", "2"]) == 0  # what is given goes before it
    assert json.loads(results.read_text().splitlines()[-1])["scores"] == [0.0]
    trained("--seeds", "2-2", "--inputs", "vectors")
    capsys.readouterr()
    other = tmp_path / "saved" / "vectors.seed2"
    message = fails(*score, "--evaluate-only", probe, other)
    assert f"{probe} and {other} were trained on data that was read in other ways: column (was 1, is -1)" in message


def test_how_layer_states_are_given_is_kept_with_a_probe_and_concerns_no_word_vectors(
    tmp_path: Path,
    ten: Path,
    features: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--state-layers", "0,2", "--normalise-states", "--mix-rate", "3"]
    options += ["--states-dropout", "0.1", "--vectors-dropout", "0.3", "--no-match-vectors"]
    vectors, both = trained("--seeds", "1", "--epochs", "2", "--inputs", "vectors,both", *options)
    names = ("state_layers", "normalise_states", "mix_rate", "states_dropout", "vectors_dropout", "match_vectors")
    assert [vectors["settings"][name] for name in names] == ["all", False, 1.0, 0.0, 0.0, False]
    assert [both["settings"][name] for name in names] == ["0,2", True, 3.0, 0.1, 0.3, False]
    (states,) = trained("--seeds", "1", "--epochs", "2", "--inputs", "features", *options)
    assert [states["settings"][name] for name in names] == ["0,2", True, 3.0, 0.1, 0.0, True]
    probe = tmp_path / "saved" / "both.seed1"
    assert load_file(probe / "probe.safetensors").keys() >= {f"inputs.mix.scalar_parameters.{row}" for row in (0, 1)}
    score = ["ner", "--evaluate-only", probe, "--test", ten, "--vectors", "random:1:12", "--features", features]
    results = tmp_path / "again.jsonl"
    assert main([*map(str, score), "--results", str(results)]) == 0
    assert json.loads(results.read_text())["scores"] == both["scores"]
    capsys.readouterr()
    again = ["--seeds", "1", "--epochs", "2", "--inputs"]
    assert trained(*again, "vectors")[0]["scores"] == vectors["scores"]
    assert "trained before" in capsys.readouterr().out
    arguments = ["ner", "--train", ten, "--dev", ten, "--features", features, "--vectors", "random:1:12", *again]
    assert "trained with other settings" in fails(*arguments, "both", *TINY[:-2], "--save", tmp_path / "saved")
    content = json.loads((probe / "probe.json").read_text())
    for layers, message in (
        ("0,9", "the layers here are 0, 1, 2, and there is no layer 9"),
        ("x", "give all, top, or numbers"),
    ):
        (probe / "probe.json").write_text(json.dumps(content | {"settings": content["settings"] | {names[0]: layers}}))
        found = fails(*score)
        assert f"error: {probe / 'probe.json'}: --state-layers {layers} is not possible: {message}" in found
        assert found.endswith("train the probe again\n")


def test_what_no_saved_probe_reads_is_refused(
    tmp_path: Path,
    ten: Path,
    features: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained("--seeds", "1", "--inputs", "vectors")
    capsys.readouterr()
    score = ["ner", "--evaluate-only", tmp_path / "saved" / "vectors.seed1", "--test", ten, "--vectors", "random:1:12"]
    assert f"--features {features} is not read by the probes given: leave" in fails(*score, "--features", features)


def test_saved_probes_that_cannot_be_scored(
    tmp_path: Path,
    ten: Path,
    features: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained("--seeds", "1", "--inputs", "both")
    capsys.readouterr()
    probe = tmp_path / "saved" / "both.seed1"
    other = tmp_path / "other.h5"
    write_random_features(other, words_of(TEN_SENTENCES), model="m2")
    score = ["ner", "--evaluate-only", probe, "--test", ten]
    assert "probe.json does not exist" in fails("ner", "--evaluate-only", tmp_path / "none", "--test", ten)
    assert "it needs --vectors" in fails(*score, "--features", features)
    assert "it needs --features or --model" in fails(*score, "--vectors", "random:1:12")
    message = fails(*score, "--features", other, "--vectors", "random:1:12")
    assert 'was trained on other features (["m1", null, null]) than those given (["m2", null, null])' in message
    weights = (probe / "probe.safetensors").read_bytes()
    (probe / "probe.safetensors").write_bytes(weights[: len(weights) // 2])
    message = fails(*score, "--features", features, "--vectors", "random:1:12")
    assert "probe.safetensors is truncated or changed" in message
    assert message.endswith(": train the probe again\n")
    (probe / "probe.safetensors").write_bytes(weights)
    content = json.loads((probe / "probe.json").read_text())
    record, vocabulary = content["record"], content["vocabulary"]
    for change, words in (
        ({"version": 99}, "has version 99 of the format elmoc-probe, this elmoc reads versions 2 to 3: use the elmoc"),
        ({"format": "x"}, "probe.json is not of the format elmoc-probe: train the probe again, or give a directory of"),
        ({"unknown": 1}, "probe.json: unknown key unknown (known: task, kind, "),
        (
            {"kind": "x"},
            "probe.json: kind must be one of vectors, both, features, model, not 'x': train the probe again",
        ),
        ({"record": "x"}, "probe.json: record must be of type object, not 'x': train the probe again"),
        ({"record": record | {"scores": ["1"]}}, "probe.json: record.scores[0] must be of type float, not '1': train"),
        ({"record": {}}, "probe.json: the field record.task is missing: train the probe again"),
        ({"record": record | {"counts": []}}, "probe.json: record.counts has not as many numbers for each of 10"),
        ({"record": record | {"curves": [3]}}, "probe.json: record.curves[0] must be of type array, not 3: train"),
        ({"record": record | {"inputs": "a" * 100_000}}, "probe.json: record.inputs must be one of vectors, both, "),
        ({"seed": 2}, "probe.json: record is the line of results of another probe: train the probe again"),
        ({"task": "snli", "record": record | {"task": "snli"}}, "is a probe of the task snli, not ner"),
        ({"settings": content["settings"] | {"new": 1}}, "probe.json: unknown key settings.new (known: settings."),
        (
            {"settings": content["settings"] | {"layers": 10**9}},
            "probe.json: settings.layers must be at least 1 and at",
        ),
        (
            {"settings": content["settings"] | {"hidden_size": "x"}},
            "probe.json: settings.hidden_size must be of type int",
        ),
        ({"vocabulary": {"types": ["PER"]}}, "probe.json: the field vocabulary.characters is missing: train"),
        ({"vocabulary": vocabulary | {"types": 3}}, "probe.json: vocabulary.types must be of type array, not 3: train"),
        ({"vocabulary": vocabulary | {"types": []}}, "probe.json: vocabulary.types: expected `array` of length >= 1"),
    ):
        (probe / "probe.json").write_text(json.dumps(content | change))
        assert words in fails(*score, "--features", features, "--vectors", "random:1:12")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output.bias": None}, "(lacks tensors: output.bias): train the probe again"),
        ({"other": torch.zeros(2)}, "(has unknown tensors: other): train the probe again"),
        ({"output.bias": torch.zeros(4)}, "(output.bias has the shape [4], where [13] is expected): train the probe"),
        ({"output.bias": torch.zeros(13, 1)}, "(output.bias has the shape [13, 1], where [13] is expected): train"),
        ({"output.bias": torch.zeros(13).double()}, "(output.bias has the type torch.float64, where torch.float32 is"),
        ({"output.bias": torch.zeros(13).int()}, "(output.bias has the type torch.int32, where torch.float32 is"),
        ({"output.bias": torch.full([13], torch.nan)}, "(output.bias has a number that is not finite): train the"),
        ({"inputs.deviation": torch.tensor(torch.inf)}, "(inputs.deviation has a number that is not finite): train"),
    ],
)
def test_weights_that_do_not_fit_are_one_sentence(
    tmp_path: Path,
    ten: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    change: dict[str, torch.Tensor | None],
    message: str,
) -> None:
    trained("--seeds", "1", "--inputs", "vectors", "--epochs", "1")
    capsys.readouterr()
    probe = tmp_path / "saved" / "vectors.seed1"
    weights = load_file(probe / "probe.safetensors") | change
    save_file({name: weight for name, weight in weights.items() if weight is not None}, probe / "probe.safetensors")
    score = ["ner", "--evaluate-only", probe, "--test", ten, "--vectors", "random:1:12"]
    assert re.search(r"probe\.safetensors is (truncated or changed|damaged) ", fails(*score))
    as_version_2(probe)
    assert f"{probe / 'probe.safetensors'} does not fit its probe.json {message}" in fails(*score)


def test_probes_of_version_2_are_read_and_damage_is_found_in_those_of_version_3(
    tmp_path: Path,
    ten: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = trained("--seeds", "1", "--inputs", "vectors")
    probe = tmp_path / "saved" / "vectors.seed1"
    weights = bytearray((probe / "probe.safetensors").read_bytes())
    weights[-9] ^= 1
    (probe / "probe.safetensors").write_bytes(weights)
    capsys.readouterr()
    message = fails("ner", "--evaluate-only", probe, "--test", ten, "--vectors", "random:1:12")
    assert f"{probe / 'probe.safetensors'} is damaged " in message
    as_version_2(probe)
    assert main(["ner", "--evaluate-only", str(probe), "--test", str(ten), "--vectors", "random:1:12"]) == 0
    assert trained("--seeds", "1", "--inputs", "vectors") == record
    (probe / "probe.safetensors").unlink()
    capsys.readouterr()
    message = fails("ner", "--evaluate-only", probe, "--test", ten, "--vectors", "random:1:12")
    assert "probe.safetensors does not exist" in message


def test_a_damaged_probe_costs_neither_time_nor_memory(
    tmp_path: Path,
    ten: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained("--seeds", "1", "--inputs", "vectors", "--epochs", "1")
    capsys.readouterr()
    probe = tmp_path / "saved" / "vectors.seed1"
    content = json.loads((probe / "probe.json").read_text())
    settings, vocabulary = content["settings"], content["vocabulary"]
    for change, message in (
        ({"settings": settings | {"hidden_size": 100_000}}, "does not fit its probe.json (lstm.lstm.bias_hh_l0 has"),
        ({"settings": settings | {"layers": 100}}, "does not fit its probe.json (lacks tensors: lstm.lstm."),
        ({"vocabulary": vocabulary | {"types": [str(one) for one in range(20_000)]}}, "vocabulary.types: expected"),
    ):
        (probe / "probe.json").write_text(json.dumps(content | change))
        assert message in fails("ner", "--evaluate-only", probe, "--test", ten, "--vectors", "random:1:12")


def test_a_probe_of_text_with_nul_characters_is_read_again(
    ten: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    ten.write_text(ten.read_text().replace("Ada\t", "A\0da\t"))
    arguments = ["--seeds", "1", "--inputs", "vectors", "--characters"]
    assert trained(*arguments) == trained(*arguments)


def test_saved_probes_have_the_permissions_that_the_umask_leaves_and_nothing_else_is_left(
    tmp_path: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    probe = tmp_path / "saved" / "vectors.seed1"
    probe.mkdir(parents=True)
    (probe / ".tmpAb12").touch()  # of a run that was killed
    before = os.umask(0o027)
    try:
        trained("--seeds", "1", "--inputs", "vectors", "--epochs", "1")
    finally:
        os.umask(before)
    assert [path.name for path in probe.parent.iterdir()] == ["vectors.seed1"]
    assert {path.name: path.stat().st_mode & 0o777 for path in probe.iterdir()} == {
        "probe.json": 0o640,
        "probe.safetensors": 0o640,
    }


def test_other_layers_of_the_same_model_are_refused(
    tmp_path: Path,
    ten: Path,
    features: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("top", "average"):
        write_random_features(tmp_path / f"{name}.h5", words_of(TEN_SENTENCES), layers=1)
        with h5py.File(tmp_path / f"{name}.h5", "r+") as file:
            file.attrs["layers"] = [name]
    trained("--seeds", "1", "--inputs", "features", "--features", tmp_path / "top.h5")
    probe = tmp_path / "saved" / "features.seed1"
    capsys.readouterr()
    message = fails("ner", "--evaluate-only", probe, "--test", ten, "--features", tmp_path / "average.h5")
    assert (
        'was trained on other features (["m1", null, ["top"]]) than those given (["m1", null, ["average"]])' in message
    )


def test_probes_of_different_settings_are_different_lines_of_results(
    tmp_path: Path,
    ten: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained("--inputs", "vectors", "--seeds", "1-2")
    trained("--inputs", "vectors", "--seeds", "3-3", "--dropout", "0.1")
    probes = [tmp_path / "saved" / f"vectors.seed{seed}" for seed in (1, 2, 3)]
    results = tmp_path / "evaluated.jsonl"
    arguments = ["ner", "--test", ten, "--vectors", "random:1:12", "--results", results, "--evaluate-only"]
    assert main([str(one) for one in [*arguments, *probes]]) == 0
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(line["seeds"], line["settings"]["dropout"]) for line in lines] == [([1, 2], 0.5), ([3], 0.1)]
    capsys.readouterr()
    message = fails(*arguments, probes[0], probes[1], probes[0])
    assert "are both of vectors, seed 1: score them by two commands" in message


def test_a_file_is_named_once(ten: Path, fails: Callable[..., str]) -> None:
    message = fails("ner", "--train", ten, "--dev", ten, ten, "--vectors", "random:1:12")
    assert f"--dev names {ten} twice" in message


def test_bytes_in_a_foreign_feature_file(
    tmp_path: Path, features: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    with h5py.File(features, "r+") as file:
        file.attrs["tool"] = np.bytes_(b"bilm")
        file.attrs["sizes"] = [1, 2]
        file.attrs["nothing"] = h5py.Empty("f")
    (record,) = trained("--inputs", "features", "--seeds", "1")
    assert (record["features"]["tool"], record["features"]["sizes"]) == ("bilm", [1, 2])
    assert "Empty" in record["features"]["nothing"]
    saved = json.loads((tmp_path / "saved" / "features.seed1" / "probe.json").read_text())
    assert saved["record"]["features"] == record["features"]


def test_features_of_a_model_are_those_of_a_file_dumped_from_it(
    tmp_path: Path, ten: Path, model_path: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    sentences, features = tmp_path / "sentences.txt", tmp_path / "dumped.h5"
    sentences.write_text("".join(" ".join(words) + "\n" for words in words_of()))
    assert dump(["dump-features", str(model_path), str(sentences), str(features)]) == 0
    results = tmp_path / "model.jsonl"
    arguments = ["ner", "--train", ten, "--dev", ten, "--vectors", "random:1:12", "--seeds", 1, "--results", results]
    for source, kind in ((["--features", features], "features"), (["--model", model_path], "model")):
        assert main([*map(str, [*arguments, *source, "--inputs", f"{kind},both"]), *TINY]) == 0
    records = [json.loads(line) for line in results.read_text().splitlines()]
    assert [record["inputs"] for record in records] == ["features", "both", "model", "both"]
    for dumped, computed in zip(records[:2], records[2:], strict=True):
        assert computed["scores"] == dumped["scores"]
        assert [epoch["loss"] for epoch in computed["curves"][0]] == pytest.approx(
            [epoch["loss"] for epoch in dumped["curves"][0]], rel=1e-4
        )
        assert computed["features"]["model"] == dumped["features"]["model"]
        assert computed["features"]["directory"] == str(model_path)
