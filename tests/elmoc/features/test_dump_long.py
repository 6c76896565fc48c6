"""Long words, and lines that are too long."""

from collections.abc import Callable
from pathlib import Path

from elmoc.__main__ import main
from elmoc.features.options import MOST_WORDS
from tests.elmoc.features.sentences import dumped

from elmoc import FeatureFile


def test_a_word_of_many_characters(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\n" + "x" * 1_000_000 + "\n")
    assert [array.shape[1] for array in dumped(model_path, tmp_path / "in.txt", tmp_path / "f.h5")] == [2, 1]
    with FeatureFile(tmp_path / "f.h5") as file:
        assert file.find(["x" * 1_000_000]) == 1


def test_a_line_has_a_number_of_words_that_memory_can_hold(
    model_path: Path, tmp_path: Path, error_line: Callable[[int], str]
) -> None:
    (tmp_path / "in.txt").write_text("a b\n" + "w " * (MOST_WORDS + 1) + "\n")
    status = main(["dump-features", str(model_path), str(tmp_path / "in.txt"), str(tmp_path / "f.h5")])
    assert "in.txt, line 2" in error_line(status)
