"""Labels of the parts of data: unknown ones are told."""

from pathlib import Path
from typing import Any

import pytest
from downstream.probe.splits import read_splits
from downstream.tasks.ner.task import TASK as NER
from downstream.tasks.snli.task import TASK as SNLI
from downstream.tasks.srl.task import TASK as SRL
from elmoc.errors import quiet
from tests.downstream.conftest import columns

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe


def pairs(labels: str) -> str:
    return "premise\thypothesis\tlabel\n" + "".join(f"a\tb\t{label}\n" for label in labels.split())


def entities(tags: str) -> str:
    return columns(" ".join(f"w{place}/{tag}" for place, tag in enumerate(tags.split())))


def roles(cells: str) -> str:
    rows = [f"d 0 {i} w{i} X * {'be be.01' if i == 0 else '- -'} {cell}" for i, cell in enumerate(cells.split())]
    return "\n".join([*rows, ""])


TASKS: dict[str, Any] = {"ner": (NER, entities), "snli": (SNLI, pairs), "srl": (SRL, roles)}


@pytest.mark.parametrize(
    ("name", "trained", "scored", "read", "said"),
    [
        # labels that training never had
        ("ner", "B-Disease O", "B-DISEASE I-DISEASE O", "DISEASE 1", "'DISEASE' (1); it has 'Disease' (1)"),
        ("ner", "B-PER", "B-PER B-GPE B-GPE", "PER 1 GPE 2", "warning: dev: 2 of 3 labels are unknown"),
        ("snli", "yes no yes", "1 0 yes", "1 1 0 1 yes 1", "'0' (1), '1' (1); it has 'yes' (2), 'no' (1)"),
        ("snli", "entailment contradiction", "neutral", "neutral 1", "warning: dev: 1 of 1 labels"),
        ("srl", "(V*) (ARG0*)", "(V*) (A0*)", "V 1 A0 1", "warning: dev: 1 of 2 labels are unknown"),
        ("ner", "B-PER O", "O O", "", "warning: dev has no label, such as 'PER' (1)"),
        # training has both
        ("ner", "B-Loc B-LOC", "B-loc", "loc 1", "warning: dev: 1 of 1 labels"),
        # nothing to say
        ("ner", "B-PER B-LOC", "B-LOC I-LOC", "LOC 1", ""),
        ("snli", "+ -- +", "-- +", "-- 1 + 1", ""),
    ],
)  # fmt: skip
def test_labels_of_two_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, trained: str, scored: str, read: str, said: str
) -> None:
    task, write = TASKS[name]
    files = {"train": [tmp_path / "train"], "dev": [tmp_path / "dev"]}
    files["train"][0].write_text(write(trained), encoding="utf-8")
    files["dev"][0].write_text(write(scored), encoding="utf-8")
    train, dev = read_splits(task, files, task.reader)
    assert " ".join(f"{label} {count}" for label, count in dev.labels.items()) == read
    assert len(dev.examples) == len(dev.lengths) == (scored.count(" ") + 1 if name == "snli" else 1)
    errors = capsys.readouterr().err
    assert said in errors
    assert bool(errors) == bool(said)
    # A part that is read later, alone, is read the same.
    (again,) = read_splits(task, {"test": files["dev"]}, task.reader, trained=train.labels)
    assert again.examples == dev.examples


def test_a_saved_probe_tells_labels_that_its_training_lacked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, new = tmp_path / "train.tsv", tmp_path / "new.tsv"
    train.write_text(pairs("entailment contradiction entailment"))
    new.write_text(pairs("entailment neutral CONTRADICTION perhaps"))
    inputs = InputOptions(vectors=["random:1:4"])
    options = ProbeOptions(preset="small", seeds=1, settings={"epochs": 1}, save=tmp_path / "saved")
    run_probe("snli", ProbeData(train=[train], dev=[train]), inputs, options)
    said = capsys.readouterr()
    assert said.out.count("6 words, OF THE TRAINING DATA: ") == 1
    assert not [line for line in said.err.splitlines() if line.startswith(("note", "warning"))]
    options = ProbeOptions(evaluate_only=tmp_path / "saved" / "vectors.seed1")
    run_probe("snli", ProbeData(test=[new]), inputs, options)
    errors = capsys.readouterr().err
    assert "3 of 4 labels are unknown to the training data, and are never learned: 'CONTRADICTION' (1), " in errors
    with quiet():
        run_probe("snli", ProbeData(test=[new]), inputs, options)
    assert capsys.readouterr().err == ""


def test_many_labels_are_listed_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        (tmp_path / name).write_text(pairs(" ".join(f"{name}{number}" for number in range(200))))
    read_splits(SNLI, {"train": [tmp_path / "a"], "dev": [tmp_path / "b"]}, SNLI.reader)
    assert "and 190 more; it has" in capsys.readouterr().err
