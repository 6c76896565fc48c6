"""Pictures of results: gains, and gains against the part of the training data; what cannot be drawn is an error."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.downstream.results.result_lines import BETTER, WORSE, Run, ner_line, write_lines


def test_the_plot_is_a_picture_that_grows_with_the_rows(table: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    heights = []
    for datasets in (["a"], ["a", "b", "c"]):
        lines = [
            ner_line(kind, right, dataset=dataset)
            for dataset in datasets
            for kind, right in (("vectors", WORSE), ("both", BETTER), ("features", WORSE))
        ]
        table(*lines, ner_line("both", BETTER, dataset="no baseline"), arguments=["--plot", tmp_path / "gains.png"])
        data = (tmp_path / "gains.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        heights.append(int.from_bytes(data[20:24], "big"))
    assert heights[1] > heights[0]


def test_gains_are_drawn_against_the_part_of_the_training_data(
    table: Run, tmp_path: Path, fails: Callable[..., str]
) -> None:
    pytest.importorskip("matplotlib")
    settings = ner_line("both", BETTER)["settings"]
    lines = [
        ner_line(kind, right, settings=settings | {"train_fraction": fraction}, dataset="a $ b")
        for fraction in (0.01, 0.1, 1.0)
        for kind, right in (("vectors", WORSE), ("both", BETTER), ("features", WORSE))
    ]
    path = tmp_path / "fractions.png"
    table(*lines, ner_line("both", BETTER), arguments=["--fractions", path])
    assert path.read_bytes().startswith(b"\x89PNG")
    path.unlink()
    one = write_lines(tmp_path / "one.jsonl", *lines[:3])
    assert "there is no curve to draw: no task has gains with two values" in fails("table", one, "--fractions", path)
    assert not path.exists()


def test_a_plot_without_a_gain_or_without_matplotlib_is_an_error(
    tmp_path: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", BETTER))
    assert "there is no gain to draw" in fails("table", path, "--plot", tmp_path / "gains.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "`pip install -e '.[plots]'`" in fails("table", path, "--plot", tmp_path / "gains.png")
    assert not (tmp_path / "gains.png").exists()


def test_a_plot_shows_dollars_as_they_are_and_has_room_for_its_rows(
    table: Run, tmp_path: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    lines = [ner_line(kind, right, dataset="$\\x$") for kind, right in (("vectors", WORSE), ("both", BETTER))]
    table(*lines, arguments=["--plot", tmp_path / "gains.png"])
    monkeypatch.setattr("downstream.results.plot.MOST_ROWS", 0)
    path = write_lines(tmp_path / "a.jsonl", *lines)
    assert "1 rows are more than a picture has room for: draw at most 0" in fails("table", path, "--plot", "p.png")
