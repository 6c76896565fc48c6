"""Plot: the learning curve of a run is drawn, also beside others, and a run without one is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from pretrain.plot import PANELS, main


def write_run(path: Path, panels: Any = PANELS, *, evaluations: int = 3) -> Path:
    """A run directory with evaluations that have the metrics of these panels."""
    names = [name for _, curves in panels for name, _ in curves]
    lines = [
        {"kind": "evaluation", "update": update, "words": 1e6 * update}
        | {prefix + name: 0.1 * update for name in names for prefix in ("", "constant_")}
        for update in range(evaluations)
    ]
    path.mkdir(exist_ok=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("panels", [PANELS, PANELS[1:]], ids=["all", "of a softmax"])
def test_draws_every_curve_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], panels: Any) -> None:
    write_run(tmp_path, panels)
    assert main([str(tmp_path), str(tmp_path / "curve.png")]) == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "3 evaluations, 2.00 million words" in capsys.readouterr().out


def test_runs_are_drawn_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cosine = write_run(tmp_path / "cosine", evaluations=1)
    softmax, other = (write_run(tmp_path / name, PANELS[1:]) for name in ("softmax", "other"))
    widths = []
    for runs in ([cosine, softmax], [softmax, other]):
        assert main([*map(str, runs), str(tmp_path / "curves.png")]) == 0
        widths.append(int.from_bytes((tmp_path / "curves.png").read_bytes()[16:20], "big"))
    assert widths == [3 * 600, 2 * 600], "a panel a metric that one of them has"
    printed = capsys.readouterr().out
    assert f"{cosine}: 1 evaluation, 0.00 million words\n{softmax}: 3 evaluations, 2.00 million words" in printed


def test_a_run_without_evaluations_is_an_error(tmp_path: Path, error_line) -> None:
    assert str(tmp_path / "none") in error_line(main([str(tmp_path / "none"), str(tmp_path / "curve.png")]))
    (tmp_path / "metrics.jsonl").write_text("")
    assert str(tmp_path) in error_line(main([str(tmp_path), str(tmp_path / "curve.png")]))
    assert not (tmp_path / "curve.png").exists()


def test_a_metric_that_was_not_finite_leaves_a_gap(tmp_path: Path) -> None:
    names = [prefix + name for _, curves in PANELS for name, _ in curves for prefix in ("", "constant_")]
    lines = [{"kind": "evaluation", "update": each, "words": each} | dict.fromkeys(names) for each in range(3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "eval')
    assert main([str(tmp_path), str(tmp_path / "curve.png")]) == 0
