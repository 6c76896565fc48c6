"""Plot: the learning curve of a run is drawn, also beside others, and a run without one is refused."""

import json
from pathlib import Path

import pytest

from pretrain.plot import PANELS, main


def write_run(path: Path, metrics: list[str], sources: tuple[str, ...] = ()) -> Path:
    """A run directory with three evaluations that have these metrics, the last of them not finite."""
    names = [prefix + name for name in metrics for prefix in ("", "constant_", *(f"{each}/" for each in sources))]
    lines = [
        {"kind": "evaluation", "update": update, "words": 1e6 * update}
        | dict.fromkeys(names, 0.1 * update if update < 2 else None)
        for update in range(3)
    ]
    path.mkdir(exist_ok=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "eval')
    return path


def size_of(image: Path) -> tuple[int, int]:
    content = image.read_bytes()
    assert content.startswith(b"\x89PNG")
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def test_draws_every_curve_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, output = write_run(tmp_path / "run", [*PANELS], ("news", "talk")), tmp_path / "curve.png"
    assert main([str(run), str(output)]) == 0
    assert size_of(output) == (3 * 600, 1104), "a second row has the sources"
    assert "3 evaluations, 2.00 million words" in capsys.readouterr().out


def test_runs_are_drawn_side_by_side(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "cosine", [*PANELS])
    softmax, other = (write_run(tmp_path / name, [*PANELS][1:]) for name in ("softmax", "other"))
    widths = []
    for runs in ([whole, softmax], [softmax, other]):
        assert main([*map(str, runs), str(tmp_path / "curves.png")]) == 0
        widths.append(size_of(tmp_path / "curves.png")[0])
    assert widths == [3 * 600, 2 * 600], "a panel a metric that one of them has"
