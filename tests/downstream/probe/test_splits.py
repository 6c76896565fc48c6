"""Splits: parts of training data are nested, the same for every run, and of what was annotated together."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from downstream.__main__ import main
from downstream.inputs.sentence import Sentence
from downstream.probe.task import random_part, read_split
from downstream.tasks.sst5.task import TASK as SST5
from downstream.tasks.sst5.task import Sst5ReaderOptions, distinct_phrases

TREES = """\
(3 (2 so) (3 (2 so) (4 good)))
(2 so)
(3 (3 so) (4 good))
(2 (2 so) (2 so))
"""


def test_parts_are_nested_in_order_and_of_whole_places() -> None:
    task: Any = SimpleNamespace(sentences=lambda example: [Sentence((), "f", example[0])])
    examples = [(place, number) for place in range(50) for number in range(place % 3 + 1)]
    parts = [random_part(task, examples, fraction) for fraction in (0.001, 0.1, 0.5, 0.99, 1)]
    assert [len({place for place, _ in part}) for part in parts] == [1, 5, 25, 50, 50]
    for smaller, larger in zip(parts, parts[1:], strict=False):
        assert set(smaller) <= set(larger)
    for part in parts:
        assert part == [one for one in examples if one[0] in {place for place, _ in part}]
    assert parts[-1] == examples
    assert parts[2] == random_part(task, examples, 0.5), "every run draws the same"


def test_a_file_is_known_by_all_of_its_bytes(tmp_path: Path) -> None:
    """A fingerprint of some blocks of a large file would miss a label that was corrected between them."""
    path, tree = tmp_path / "trees.txt", f"(3 (2 {'o' * 2**20}) (4 good))\n"
    found = []
    for label in "34":
        path.write_text(3 * tree + tree.replace("(3", f"({label}", 1) + 2 * tree)
        found.append(read_split(SST5, "dev", [path], Sst5ReaderOptions()).fingerprints)
    assert found[0] != found[1]


def test_of_trees_all_phrases_or_none_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trees.txt"
    path.write_text(TREES)
    whole = SST5.read(path, Sst5ReaderOptions(), training=True)
    split = read_split(SST5, "train", [path], Sst5ReaderOptions(), fraction=0.5)
    lines = {phrase.sentence.line for phrase in split.examples}
    assert len(lines) == 2
    assert split.examples == [phrase for phrase in whole if phrase.sentence.line in lines]
    assert split.files == {str(path): len(whole)}
    assert ": 50 % of them" in capsys.readouterr().out
    distinct = read_split(SST5, "train", [path], Sst5ReaderOptions(subtrees="distinct"), fraction=0.5)
    assert distinct.examples == distinct_phrases(split.examples), "phrases of trees left out do not count"


def test_scoring_reads_everything(ten: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ner", "--train", ten, "--dev", ten, "--vectors", "random:1:6", "--train-fraction", "0.3"]
    arguments += ["--hidden-size", "6", "--layers", "1", "--dropout", "0", "--epochs", "1", "--seeds", "1"]
    assert main([str(one) for one in arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("train  3 sentences")
    assert lines[1].startswith("dev    10 sentences")
