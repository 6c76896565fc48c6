"""Plot: the learning curve of a run is drawn, also beside others, and a run without one is refused."""

import json
from pathlib import Path

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
    """Its width and height, of which those of a panel are multiples."""
    content = image.read_bytes()
    assert content.startswith(b"\x89PNG")
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def test_every_curve_of_runs_is_drawn(tmp_path: Path) -> None:
    named, whole = (write_run(tmp_path / name, [*PANELS], sources) for name, sources in (("a", ("x", "y")), ("b", ())))
    other = write_run(tmp_path / "c", [*PANELS][1:])
    sizes = []
    for runs in ([named], [whole, other], [other]):
        assert main([*map(str, runs), str(tmp_path / "curves.png")]) == 0
        sizes.append(size_of(tmp_path / "curves.png"))
    width = sizes[0][0]
    assert [own for own, _ in sizes] == [width, width, width * 2 // 3], "a panel a metric that one of them has"
