"""Splits: parts of training data are nested, the same for every run, and of what was annotated together."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from downstream.inputs.sentence import TaskSentence
from downstream.probe.splits import random_part, read_splits
from downstream.tasks.sst5.task import TASK as SST5
from downstream.tasks.sst5.task import Sst5ReaderOptions
from tests.downstream.tasks.sst5.test_task import REPEATED


def test_parts_are_nested_in_order_and_of_whole_places() -> None:
    task: Any = SimpleNamespace(sentences=lambda example: [TaskSentence((), "f", example[0])])
    examples = [(place, number) for place in range(50) for number in range(place % 3 + 1)]
    parts = [random_part(task, examples, fraction) for fraction in (0.001, 0.1, 0.5, 0.99, 1)]
    assert [len({place for place, _ in part}) for part in parts] == [1, 5, 25, 50, 50]
    for smaller, larger in zip(parts, parts[1:], strict=False):
        assert set(smaller) <= set(larger)
    for part in parts:
        assert part == [one for one in examples if one[0] in {place for place, _ in part}]
    assert parts[-1] == examples
    assert parts[2] == random_part(task, examples, 0.5), "every run draws the same"


def test_of_trees_all_phrases_or_none_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trees.txt"
    path.write_text(REPEATED)
    whole = SST5.read(path, Sst5ReaderOptions(), training=True)
    (split,) = read_splits(SST5, {"train": [path]}, Sst5ReaderOptions(), fraction=0.5)
    words = sum(len(phrase.sentence.words) for phrase in split.examples)
    said = capsys.readouterr().out
    assert said.startswith(f"train  {len(split.examples)} phrases (50 % of them), {words} words: '")
    lines = {phrase.sentence.line for phrase in split.examples}
    assert len(lines) == 2
    assert split.examples == [phrase for phrase in whole if phrase.sentence.line in lines]
    assert split.files == {str(path): len(whole)}
    (distinct,) = read_splits(SST5, {"train": [path]}, Sst5ReaderOptions(subtrees="distinct"), fraction=0.5)
    assert {*distinct.examples} <= {*split.examples}, "phrases of trees left out do not count"
    with pytest.raises(Exception, match=r"^--train names .*trees\.txt twice$"):
        read_splits(SST5, {"train": [path, tmp_path / ".." / tmp_path.name / path.name]}, Sst5ReaderOptions())
