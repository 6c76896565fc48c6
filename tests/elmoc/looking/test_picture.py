"""Pictures of a word's uses: a PNG that appears whole, by `elmoc plot`."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elmoc.__main__ import main
from elmoc.looking.figures import save_figure
from elmoc.looking.picture import principal_components
from tests.conftest import Fails

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
    assert main(["plot", str(model_path), text, "--word", "bank"]) == 0
    assert Path("bank.png").read_bytes().startswith(b"\x89PNG")
    assert "16 uses" in capsys.readouterr().out
    [axes] = figures[0].axes
    assert [len(group.get_offsets()) for group in axes.collections] == [16]
    assert {each.get_text() for each in axes.texts} <= {f"{line.split()[1]} bank of" for line in LINES} | {
        " ".join(line.split()[:5]) for line in LINES
    } | {" ".join(line.split()[1:5]) for line in LINES}
    for each in axes.texts:
        box = each.get_window_extent()
        assert box.x0 >= 0, "no label is cut"
        assert box.x1 <= figures[0].bbox.x1, "no label is cut"
    assert main(["plot", str(model_path), text, "--word", "bank", "-o", "bank.pdf"]) == 0
    assert Path("bank.pdf").read_bytes().startswith(b"%PDF"), "the format follows the ending"
    assert main(["plot", str(model_path), text, "--word", "river"]) == 1


def test_without_a_library(text: str, model_path: Path, error_line: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "'.[plots]'" in error_line(main(["plot", str(model_path), text, "--word", "bank"]))


def test_principal_components_keep_distances() -> None:
    vectors = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    points = principal_components(vectors, 10)
    for first in range(7):
        for second in range(7):
            expected = np.linalg.norm(directions[first] - directions[second])
            assert np.linalg.norm(points[first] - points[second]) == pytest.approx(expected, abs=1e-5)
    assert (np.diff(points.var(axis=0)) <= 1e-12).all(), "the widest first"
    assert points.shape == (7, 4)
