"""Saved probes: kept, read again, scored on other data, and not trained twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from downstream.__main__ import main
from elmoc.files.checksums import FileChecksum
from safetensors.torch import load_file, save_file
from tests.downstream.conftest import columns, words_of, write_random_features

TINY = ["--hidden-size", "12", "--layers", "1", "--learning-rate", "0.02", "--batch-size", "4", "--epochs", "6"]
# Facts of the training, which stay true where its probe is scored on other data.
TRAINING_FIELDS = ["preset", "dev_scores", "best_epochs", "epochs", "curves", "seconds", "examples_per_second"]
Trained = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def trained(tmp_path: Path, ten: Path, features: Path) -> Trained:
    """Run the NER probe into `saved`, and give the records that it wrote."""

    def run(*more: object) -> list[dict[str, Any]]:
        results = tmp_path / "results.jsonl"
        results.unlink(missing_ok=True)
        arguments = ["ner", "--train", ten, "--dev", ten, "--features", features, "--vectors", "random:1:12"]
        arguments += ["--save", tmp_path / "saved", "--results", results, *more]
        assert main([*map(str, arguments), *TINY]) == 0
        return [json.loads(line) for line in results.read_text().splitlines()]

    return run


def test_a_saved_probe_scores_as_it_did_when_it_was_trained(
    tmp_path: Path, ten: Path, features: Path, trained: Trained
) -> None:
    vectors, both = trained("--seeds", "2", "--predictions", tmp_path / "first")
    again, results = tmp_path / "again", tmp_path / "evaluated.jsonl"
    probes = [tmp_path / "saved" / f"{kind}.seed{seed}" for kind in ("vectors", "both") for seed in (1, 2)]
    arguments = ["ner", "--evaluate-only", *probes, "--test", ten, "--features", features, "--vectors", "random:1:12"]
    assert main([*map(str, arguments), "--predictions", str(again), "--results", str(results)]) == 0
    evaluated = [json.loads(line) for line in results.read_text().splitlines()]
    names = ("inputs", "seeds", "scores", "figures", "counts", "mixes", "mean", "deviation", "settings")
    for record, before in zip(evaluated, (vectors, both), strict=True):
        for name in (*names, *TRAINING_FIELDS):
            assert record[name] == before[name], name
        assert record["split"] == "test"
        assert record["data"] == before["data"] | {"test": {str(ten): 10}}
    for kind, seed in (("vectors", 1), ("both", 2)):
        written = (again / f"ner.{kind}.seed{seed}.test.conll").read_bytes()
        assert written == (tmp_path / "first" / f"ner.{kind}.seed{seed}.dev.conll").read_bytes()


def test_other_data_is_read_and_labelled_as_the_data_of_training_was(
    tmp_path: Path, trained: Trained, fails: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    two_columns, results = tmp_path / "two.conll", tmp_path / "results.jsonl"
    two_columns.write_text("".join(f"{line}\tO\n" if line else "\n" for line in columns().splitlines()))
    one = ["--inputs", "vectors", "--seeds"]
    (line,) = trained(*one, "1", "--train", two_columns, "--dev", two_columns, "--column", "1")
    probe = tmp_path / "saved" / "vectors.seed1"
    score = ["ner", "--evaluate-only", probe, "--test", two_columns, "--vectors", "random:1:12", "--results", results]
    results.unlink()
    assert main([*map(str, score)]) == 0
    scored = json.loads(results.read_text())
    assert (scored["reader"], scored["scores"]) == ({"column": 1, "word_column": -1}, line["scores"])
    assert main([*map(str, score), "--column", "2"]) == 0  # what is given goes before it
    assert json.loads(results.read_text().splitlines()[-1])["scores"] == [0.0]
    other = tmp_path / "other.conll"
    other.write_text(columns("Ada/B-PER met/O Zeus/B-GOD").replace("\n", "\tO\n", 3))
    assert main([*map(str, score), "--test", str(other)]) == 0, "a label that training had not"
    trained(*one, "2-2")
    capsys.readouterr()
    assert "--evaluate-only" in fails(*score, "--evaluate-only", probe, tmp_path / "saved" / "vectors.seed2")
    assert "--evaluate-only" in fails(*score, "--evaluate-only", probe, probe)


def test_a_stopped_run_goes_on_after_the_seeds_that_are_there(
    tmp_path: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = trained("--seeds", "2", "--inputs", "vectors")
    (tmp_path / "saved" / "vectors.seed2" / "probe.json").unlink()
    capsys.readouterr()
    resumed = trained("--seeds", "2", "--inputs", "vectors", "--predictions", tmp_path / "predicted")
    assert capsys.readouterr().out.count(", trained before") == 1
    assert len(list((tmp_path / "predicted").iterdir())) == 2, "of both seeds"
    for record in (*whole, *resumed):
        for name in ("seconds", "examples_per_second", "curves"):
            record[name] = len(record[name])
    assert resumed == whole


@pytest.mark.parametrize("options", [["--epochs", "3"], ["--vectors", "random:2:12"], ["--dev", "OTHER"]])
def test_a_run_into_the_probes_of_another_is_refused(
    tmp_path: Path,
    ten: Path,
    trained: Trained,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    trained("--seeds", "1", "--inputs", "vectors")
    capsys.readouterr()
    other = tmp_path / "other.conll"
    other.write_text(ten.read_text().replace("B-PER", "B-LOC"))
    given = [str(other) if one == "OTHER" else one for one in options]
    arguments = ["ner", "--train", ten, "--dev", ten, "--save", tmp_path / "saved", "--seeds", 1, *TINY]
    assert "vectors.seed1 was trained " in fails(*arguments, "--vectors", "random:1:12", *given)


def test_saved_probes_that_cannot_be_scored(
    tmp_path: Path,
    ten: Path,
    features: Path,
    trained: Trained,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    trained("--seeds", "1", "--inputs", "both")
    capsys.readouterr()
    probe, other = tmp_path / "saved" / "both.seed1", tmp_path / "other.h5"
    write_random_features(other, words_of(), model="m2")
    score = ["ner", "--evaluate-only", probe, "--test", ten]
    whole = [*score, "--features", features, "--vectors", "random:1:12"]
    assert "none/probe.json" in fails("ner", "--evaluate-only", tmp_path / "none", "--test", ten)
    assert "--vectors" in fails(*score, "--features", features)
    assert "--features" in fails(*score, "--vectors", "random:1:12")
    assert "other features" in fails(*score, "--features", other, "--vectors", "random:1:12")
    content = json.loads((probe / "probe.json").read_text())
    for change in (
        *({"version": 99}, {"format": "x"}, {"unknown": 1}, {"record": content["record"] | {"task": "snli"}}),
        *(
            {"record": content["record"] | change}
            for change in ({"inputs": "x"}, {"seeds": []}, {"vectors": {}}, {"scores": [1, 2]})
        ),
        *(
            {"record": {key: each for key, each in content["record"].items() if key != left}}
            for left in content["record"]
        ),
        *(
            {"record": content["record"] | {"settings": content["record"]["settings"] | change}}
            for change in ({"new": 1}, {"hidden_size": "x"}, {"layers": 0})
        ),
        {"vocabulary": {"types": ["PER"]}},
    ):
        (probe / "probe.json").write_text(json.dumps(content | change))
        assert "unexpected" not in fails(*whole)
    weights = probe / "probe.safetensors"
    bytes_before, tensors = weights.read_bytes(), load_file(weights)
    weights.write_bytes(bytes_before[:-9] + b"\1" + bytes_before[-8:])
    (probe / "probe.json").write_text(json.dumps(content))
    assert str(weights) in fails(*whole)
    for tensor in (torch.zeros(4), torch.full([len(tensors["output.bias"])], torch.nan)):
        save_file(tensors | {"output.bias": tensor}, weights)
        checksum = vars(FileChecksum.of(weights))
        (probe / "probe.json").write_text(json.dumps(content | {"weights": checksum}))
        assert "output.bias" in fails(*whole)
