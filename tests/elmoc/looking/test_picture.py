"""Pictures of a word's uses: a PNG that appears whole, by `elmoc plot`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmoc.__main__ import main
from elmoc.looking.figures import save_figure

pytest.importorskip("matplotlib", reason="the extra plots is not installed")
LINES = [f"The {kind} bank of {name} $ 日 ." for kind in ("left", "central") for name in "abcdefgh"]


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("\n".join(LINES) + "\n")
    Path("few.txt").write_text("\n".join(LINES[:2]) + "\n")
    return "text.txt"


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
    assert Path("bank.png").read_bytes().startswith(b"\x89PNG")
    assert "16 uses, 2 clusters" in capsys.readouterr().out
    [axes] = figures[0].axes
    assert [len(group.get_offsets()) for group in axes.collections] == [8, 8]
    names = [each.get_text().strip() for each in axes.get_legend().get_texts()]
    assert [name.rpartition("  ")[0] for name in names] == ["_very_, a", "b"]
    assert main(["plot", str(model_path), text, "--word", "bank", "-o", "bank.pdf"]) == 0
    assert Path("bank.pdf").read_bytes().startswith(b"%PDF"), "the format follows the ending"
    assert main(["plot", str(model_path), text, "--word", "river"]) == 1


def test_without_a_library(
    text: str, model_path: Path, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "'.[plots]'" in error_line(main(["plot", str(model_path), text, "--word", "bank"]))
