"""Plot: the learning curve of a run is drawn, and a run without one is refused."""

import json
from pathlib import Path

import pytest

from pretrain.plot import PANELS, main


def test_draws_every_curve_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for _, curves in PANELS for name, _ in curves]
    lines = [
        {"kind": "evaluation", "update": update, "words": 1e6 * update}
        | {prefix + name: 0.1 * update for name in names for prefix in ("", "constant_")}
        for update in range(3)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main([str(tmp_path), str(tmp_path / "curve.png")]) == 0
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "3 evaluations, 2.00 million words" in capsys.readouterr().out


def test_a_run_without_evaluations_is_an_error(tmp_path: Path, error_line) -> None:
    assert "is not a run directory" in error_line(main([str(tmp_path / "none"), str(tmp_path / "curve.png")]))
    (tmp_path / "metrics.jsonl").write_text("")
    assert "has no evaluation yet" in error_line(main([str(tmp_path), str(tmp_path / "curve.png")]))
    assert not (tmp_path / "curve.png").exists()


def test_an_evaluation_that_lacks_what_is_drawn_is_named(tmp_path: Path, error_line) -> None:
    line = {"kind": "evaluation", "update": 0, "words": 0, "cosine": 0.5, "constant_cosine": 0.5}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    error = error_line(main([str(tmp_path), str(tmp_path / "curve.png")]))
    assert "metrics.jsonl: an evaluation lacks accuracy_at_10, which is drawn" in error


def test_a_metric_that_was_not_finite_leaves_a_gap(tmp_path: Path) -> None:
    names = [prefix + name for _, curves in PANELS for name, _ in curves for prefix in ("", "constant_")]
    lines = [{"kind": "evaluation", "update": each, "words": each} | dict.fromkeys(names) for each in range(3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "eval')
    assert main([str(tmp_path), str(tmp_path / "curve.png")]) == 0
