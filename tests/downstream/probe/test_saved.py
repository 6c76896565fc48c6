"""Saved probes: kept, scored on other data, and refused where inputs or files are others."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from downstream.__main__ import main
from downstream.probe.training import evaluate
from downstream.results.records import Result
from elmoc.errors import InputError
from elmoc.files.checksums import FileChecksum
from safetensors.torch import load_file, save_file
from tests.downstream.conftest import columns, words_of, write_random_features

from downstream import InputOptions, ProbeData, ProbeOptions, ProbeResult, run_probe

TINY = {"hidden_size": 12, "layers": 1, "learning_rate": 0.02, "batch_size": 4, "epochs": 15}
OF_TRAINING = ["preset", "settings", "dev_scores", "best_epochs", "epochs", "curves", "seconds"]


@pytest.fixture
def inputs(features: Path) -> InputOptions:
    return InputOptions(vectors=["random:1:12"], features=features)


@pytest.fixture
def trained(tmp_path: Path, ten: Path, inputs: InputOptions) -> ProbeResult:
    """Two probes of ten sentences, which are saved in `saved`."""
    options = ProbeOptions(seeds=1, settings=TINY, save=tmp_path / "saved", predictions=tmp_path / "first")
    return run_probe("ner", ProbeData(train=[ten], dev=[ten]), inputs, options)


def test_a_saved_probe_scores_as_it_did_when_it_was_trained(
    tmp_path: Path, ten: Path, features: Path, inputs: InputOptions, trained: ProbeResult
) -> None:
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == ["both.seed1", "vectors.seed1"]
    for kind, before in zip(("vectors", "both"), map(Result.as_json, trained.lines), strict=True):
        probe, results = tmp_path / "saved" / f"{kind}.seed1", tmp_path / f"{kind}.jsonl"
        arguments = ["ner", "--evaluate-only", probe, "--test", ten, "--features", features, "--vectors", "random:1:12"]
        arguments += ["--results", results, "--predictions", tmp_path / "again"]
        assert main([*map(str, arguments)]) == 0
        line = json.loads(results.read_text())
        for name in ("inputs", "seeds", "scores", "figures", "counts", "mixes", *OF_TRAINING):
            assert line[name] == before[name], name
        assert (line["split"], line["data"]) == ("test", before["data"] | {"test": {str(ten): 10}})
        written = (tmp_path / "again" / f"ner.{kind}.seed1.test.conll").read_bytes()
        assert written == (tmp_path / "first" / f"ner.{kind}.seed1.dev.conll").read_bytes()
        called = run_probe("ner", ProbeData(test=[ten]), inputs, ProbeOptions(evaluate_only=probe))
        assert (called.mean, called.lines[0].as_json()) == ({kind: line["mean"]}, line)
    for vectors, settings in (("random:2:12", TINY), ("random:1:12", TINY | {"epochs": 1})):
        options = ProbeOptions(seeds=1, settings=settings, save=tmp_path / "saved")
        with pytest.raises(InputError, match=r"vectors\.seed1 is the probe of another training"):
            run_probe("ner", ProbeData(train=[ten], dev=[ten]), InputOptions(vectors=[vectors]), options)


@pytest.mark.parametrize("settings", [{}, {"optimiser": "adadelta", "halve_on_plateau": True, "decay": 0.9}])
def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(
    tmp_path: Path, ten: Path, inputs: InputOptions, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(folder: str, seed: int = 1) -> dict[str, Any]:
        chosen = TINY | {"epochs": 5, "patience": 5, "word_size": 3, "filters": 4} | settings
        options = ProbeOptions(inputs="both", seeds=f"{seed}-{seed}", settings=chosen, save=tmp_path / folder)
        [line] = run_probe("ner", ProbeData(train=[ten], dev=[ten]), inputs, options).lines
        curve = [{**epoch, "seconds": 0} for epoch in line.curves[0]]
        return {"scores": line.scores, "curve": curve, "mixes": line.mixes, "best": line.best_epochs}

    def evaluate_thrice(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(*given)

    calls: list[Any] = []
    whole = train("whole")
    monkeypatch.setattr("downstream.probe.training.evaluate", evaluate_thrice)
    with pytest.raises(KeyboardInterrupt):
        train("stopped")
    checkpoint = tmp_path / "stopped" / "ner.both.seed1.checkpoint"
    kept = checkpoint.read_bytes()
    assert train("stopped") == whole
    assert len(calls) == 3 + 3, "the third epoch is run again"
    assert not checkpoint.exists()
    weights = [load_file(tmp_path / name / "both.seed1/probe.safetensors") for name in ("whole", "stopped")]
    assert weights[0].keys() == weights[1].keys()
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
    of_another = tmp_path / "stopped" / "ner.both.seed2.checkpoint"
    of_another.write_bytes(kept)
    assert train("stopped", 2) == train("whole", 2), "a checkpoint of another training is not read"
    checkpoint.write_bytes(kept[:-30])
    with pytest.raises(InputError, match=re.escape(str(checkpoint))):
        train("stopped")


def test_data_with_a_label_that_training_had_not_and_another_column(
    tmp_path: Path, ten: Path, trained: ProbeResult
) -> None:
    other = tmp_path / "other.conll"
    other.write_text(columns("Ada/B-PER met/O Zeus/B-GOD").replace("\n", "\tO\n", 3))
    inputs = InputOptions(vectors=["random:1:12"])
    options = ProbeOptions(evaluate_only=tmp_path / "saved" / "vectors.seed1", reader={"column": 1})
    scored = run_probe("ner", ProbeData(test=[other]), inputs, options)
    assert scored.lines[0].reader["column"] == 1
    assert scored.lines[0].counts[0][0][1] == 2, "entities of the data"


def test_probes_that_cannot_be_scored(
    tmp_path: Path,
    ten: Path,
    features: Path,
    trained: ProbeResult,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    probe, other = tmp_path / "saved" / "both.seed1", tmp_path / "other.h5"
    record = probe / "probe.json"
    write_random_features(other, words_of(), model="m2")
    score = ["ner", "--evaluate-only", probe, "--test", ten]
    whole = [*score, "--features", features, "--vectors", "random:1:12"]
    assert "none/probe.json" in fails("ner", "--evaluate-only", tmp_path / "none", "--test", ten)
    assert "--vectors" in fails(*score, "--features", features)
    assert "--features" in fails(*score, "--vectors", "random:1:12")
    assert "other word vectors, those of random:1:12" in fails(*whole, "--vectors", "random:2:6")
    assert "another encoder, {'model': 'm1'" in fails(*score, "--features", other, "--vectors", "random:1:12")
    for more in (["--train", ten], ["--epochs", 3]):
        assert f"{probe} goes with the task ner and --test FILES" in fails(*whole, *more)
    assert "the task ner" in fails("srl", *whole[1:])
    content = json.loads(record.read_text())
    result = content["result"]
    damaged: list[dict[str, Any]] = [{"version": 99}, {"format": "x"}, {"unknown": 1}, {"vocabulary": {"types": ["P"]}}]
    changes: list[dict[str, Any]] = [
        {"inputs": "x"},
        {"seeds": []},
        {"vectors": {}},
        {"scores": []},
        {"features": None},
    ]
    changes += [{"settings": result["settings"] | each} for each in ({"new": 1}, {"layers": 0}, {"state_layers": "9"})]
    damaged += [{"result": result | change} for change in changes]
    del result["compared_as"]  # suites alone have it
    damaged += [{"result": {name: each for name, each in result.items() if name != left}} for left in result]
    for change in damaged:
        record.write_text(json.dumps(content | change))
        assert str(record) in fails(*whole), change
    record.write_text(json.dumps(content))
    weights = probe / "probe.safetensors"
    whole_bytes, tensors = weights.read_bytes(), load_file(weights)
    weights.write_bytes(whole_bytes[:-9] + b"\1" + whole_bytes[-8:])
    assert f"{weights} is damaged" in fails(*whole)
    save_file(tensors | {"output.bias": tensors["output.bias"][:1]}, weights)
    record.write_text(json.dumps(content | {"checksums": {weights.name: vars(FileChecksum.of(weights))}}))
    assert "output.bias" in fails(*whole)
