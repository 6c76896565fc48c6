"""Pictures of a word's uses: a PNG that appears whole, by `elmoc plot`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmoc.__main__ import main
from elmoc.files.figures import save_figure

pytest.importorskip("matplotlib", reason="the extra plots is not installed")
LINES = [f"The {kind} bank of {name} $ 日 ." for kind in ("left", "central") for name in "abcdefgh"]


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(LINES) + "\n")
    Path("few.txt").write_text("\n".join(LINES[:2]) + "\n")
    return "text.txt"


def size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[-8:-4] == b"IEND"
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


@pytest.mark.filterwarnings("error")
def test_a_picture_of_all_uses(
    text: str, model_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []

    def keep(figure: Any, path: Path) -> None:
        figures.append(figure)
        save_figure(figure, path)

    monkeypatch.setattr("elmoc.looking.picture.save_figure", keep)
    monkeypatch.setattr("elmoc.looking.picture.cluster", lambda points: np.arange(len(points)) % 2)
    # emphasis is written with underscores in many a book
    monkeypatch.setattr("elmoc.looking.picture.telling_words", lambda uses, labels, count: [["_very_", "a"], ["b"]])
    assert main(["plot", str(model_path), text, "--word", "bank"]) == 0
    assert size(Path("bank.png")) == (1650, 1275)
    said = capsys.readouterr()
    assert "warning" not in said.err
    first, *clusters = said.out.splitlines()
    assert first == "bank.png: 16 of 16 uses, 2 clusters"
    assert len(clusters) == 2
    [axes] = figures[0].axes
    points = [group.get_offsets() for group in axes.collections]
    assert [len(points), sum(map(len, points))] == [2, 16]
    names = [each.get_text().strip() for each in axes.get_legend().get_texts()]
    assert [name.rpartition("  ")[0] for name in names] == ["_very_, a", "b"]
    assert main(["plot", str(model_path), text, "--word", "bank"]) == 0, "it is replaced"
    assert sorted(path.name for path in Path().iterdir()) == ["bank.png", "few.txt", "model", "text.txt"]


def test_without_a_library(
    text: str, model_path: Path, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "'.[plots]'" in error_line(main(["plot", str(model_path), text, "--word", "bank"]))
