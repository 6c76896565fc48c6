"""Runs into a directory of saved probes: they go on after those that are there, and spoil nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from downstream.inputs.probe_inputs import open_sources
from tests.downstream.probe.conftest import TINY
from tests.elmoc.files.test_locks import hold


def test_a_stopped_run_goes_on_after_the_seeds_that_are_there(
    tmp_path: Path, trained: Callable[..., list[dict[str, Any]]], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = trained("--seeds", "2", "--inputs", "vectors")
    (tmp_path / "saved" / "vectors.seed2" / "probe.json").unlink()
    capsys.readouterr()
    resumed = trained("--seeds", "2", "--inputs", "vectors")
    out = capsys.readouterr().out
    assert "ner vectors seed 1: " in out
    assert f"trained before: {tmp_path / 'saved' / 'vectors.seed1'}" in out
    assert out.count("trained before") == 1
    for record in (*whole, *resumed):
        for name in ("seconds", "examples_per_second", "curves"):
            record[name] = len(record[name])
    assert resumed == whole


def test_a_run_goes_on_beside_a_probe_that_an_earlier_version_saved(
    tmp_path: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    (whole,) = trained("--seeds", "2", "--inputs", "both")
    first, second = (tmp_path / "saved" / f"both.seed{seed}" / "probe.json" for seed in (1, 2))
    first.unlink()
    saved = json.loads(second.read_text())
    del saved["record"]["mixes"]
    second.write_text(json.dumps(saved))
    (resumed,) = trained("--seeds", "2", "--inputs", "both")
    assert resumed["scores"] == whole["scores"]
    assert len(whole["mixes"]) == 2
    assert "mixes" not in resumed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "3"], "was trained with other settings than this run has: epochs (was 6, is 3): choose another"),
        (["--vectors", "random:2:12"], "was trained on other vectors (random:1:12) than those given (random:2:12)"),
        (["--test", "TEN"], "was trained with other split than this run has: dev, not test: choose another"),
        (["--train", "OTHER"], "was trained with other data than this run has: train was TEN: choose another"),
        (["--dev", "OTHER"], "was trained with other data than this run has: dev was TEN: choose another"),
        (["--column", "1"], "was trained with other reader than this run has: column (was -1, is 1): choose another"),
    ],
)
def test_a_run_into_the_probes_of_another_is_refused(
    tmp_path: Path,
    ten: Path,
    trained: Callable[..., list[dict[str, Any]]],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    trained("--seeds", "1", "--inputs", "vectors")
    capsys.readouterr()
    other = tmp_path / "other" / ten.name
    other.parent.mkdir()
    other.write_text(ten.read_text().replace("B-PER", "B-LOC"))
    given = [{"TEN": str(ten), "OTHER": str(other)}.get(one, one) for one in options]
    arguments = ["ner", "--train", ten, "--dev", ten, "--save", tmp_path / "saved", "--seeds", 1]
    assert message.replace("TEN", str(ten)) in fails(*arguments, *TINY, "--vectors", "random:1:12", *given)


def test_a_second_writer_is_refused_before_anything_is_computed(
    tmp_path: Path, ten: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downstream.probe.experiment.open_sources", lambda *_, **__: pytest.fail("it went on"))
    for option, name in (("--save", "vectors.seed2"), ("--predictions", "ner.vectors.seed2.dev.conll")):
        folder = tmp_path / option
        with hold(folder / name) as first:
            message = fails("ner", "--train", ten, "--dev", ten, "--vectors", "random:1:12", option, folder)
            assert f"another process is writing {folder / name}: wait for it, or stop it" in message
            first.kill()


def test_probes_and_predictions_that_are_there_need_no_lock_and_no_writing(
    tmp_path: Path, trained: Callable[..., list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["--seeds", "1", "--inputs", "vectors", "--predictions", tmp_path / "predictions"]
    record = trained(*arguments)
    monkeypatch.setattr("downstream.probe.experiment.locked", lambda _: pytest.fail("a lock in a read-only folder"))
    assert trained(*arguments) == record


def test_predictions_that_another_process_wrote_meanwhile_are_kept(
    tmp_path: Path, ten: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "ner.vectors.seed1.dev.conll"

    def train_beside_another(*arguments: Any, **options: Any) -> Any:
        sources = open_sources(*arguments, **options)
        written.write_text("of the other")
        return sources

    monkeypatch.setattr("downstream.probe.experiment.open_sources", train_beside_another)
    arguments = ["ner", "--train", ten, "--dev", ten, "--vectors", "random:1:12", "--predictions", tmp_path]
    assert f"{written} exists already" in fails(*arguments)
    assert written.read_text() == "of the other"


def test_a_directory_of_other_files_is_not_replaced(tmp_path: Path, ten: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "saved" / "vectors.seed1").mkdir(parents=True)
    (tmp_path / "saved" / "vectors.seed1" / "notes.txt").touch()
    arguments = ["ner", "--train", ten, "--dev", ten, "--vectors", "random:1:12", "--save", tmp_path / "saved"]
    assert "vectors.seed1 holds no probe, but other files: choose another directory for --save" in fails(*arguments)


def test_a_run_that_goes_on_writes_the_predictions_that_are_missing(
    tmp_path: Path, trained: Callable[..., list[dict[str, Any]]]
) -> None:
    trained("--inputs", "vectors", "--seeds", "1", "--predictions", tmp_path / "first")
    (again,) = trained("--inputs", "vectors", "--seeds", "1", "--predictions", tmp_path / "second", "--name", "other")
    written = [(tmp_path / name / "ner.vectors.seed1.dev.conll").read_bytes() for name in ("first", "second")]
    assert written[0] == written[1]
    assert again["dataset"] == "other", "the name that this run gives"


def test_the_same_files_may_be_named_otherwise(
    tmp_path: Path, ten: Path, trained: Callable[..., list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trained("--inputs", "vectors", "--seeds", "1")
    monkeypatch.chdir(ten.parent)
    (again,) = trained(
        "--inputs", "vectors", "--seeds", "1", "--train", ten.name, "--dev", f"../{ten.parent.name}/{ten.name}"
    )
    assert again["seconds"] == first[0]["seconds"], "it was not trained again"
    assert again["dataset"] == first[0]["dataset"] == ten.parent.name


@pytest.mark.parametrize("option", ["--save", "--predictions"])
def test_what_cannot_be_written_is_found_out_before_training(
    tmp_path: Path, ten: Path, fails: Callable[..., str], option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downstream.probe.experiment.train_probe", lambda *_, **__: pytest.fail("a probe was trained"))
    (tmp_path / "file").touch()
    message = fails("ner", "--train", ten, "--dev", ten, "--vectors", "random:1:12", option, tmp_path / "file" / "s")
    assert str(tmp_path / "file") in message
