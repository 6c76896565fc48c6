"""The log of a run: read up to a line that a kill broke off, and every other damage is named."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from elmoc.errors import InputError
from pretrain.run.directory import MetricsLog, RunDirectory, read_metrics
from tests.pretrain.conftest import TinyRuns

Fails = Callable[[int], str]
TRAIN = {"kind": "train", "update": 3, "words": 60, "loss": 0.5, "words_per_second": None}
EVALUATION = {"kind": "evaluation", "update": 3, "words": 60, "cosine": 0.25}


def written(folder: Path, *lines: object, end: bytes = b"") -> Path:
    (folder / "metrics.jsonl").write_bytes("".join(json.dumps(line) + "\n" for line in lines).encode() + end)
    return folder / "metrics.jsonl"


@pytest.mark.parametrize(
    "end", [b"", b"{", b'{"kind": "tr', b'{"kind": "train", "upd\xc3', b"\0" * 4096, b"not JSON\n"]
)
def test_a_last_line_that_a_kill_broke_off_is_passed_over(tmp_path: Path, end: bytes) -> None:
    written(tmp_path, TRAIN, EVALUATION, end=end)
    assert read_metrics(tmp_path, "train") == [TRAIN]
    assert read_metrics(tmp_path, "evaluation") == [EVALUATION]


@pytest.mark.parametrize("share", [index / 20 for index in range(21)])
def test_a_log_cut_off_anywhere_has_the_lines_before(tmp_path: Path, share: float) -> None:
    lines = [TRAIN | {"update": update} for update in range(5)]
    path = written(tmp_path, *lines)
    content = path.read_bytes()[: int(share * path.stat().st_size)]
    path.write_bytes(content)
    whole = content.count(b"}")
    assert read_metrics(tmp_path, "train") == lines[:whole]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not valid JSON"),
        ("", "line 2 is not valid JSON"),
        ("[" * 5000, "line 2 is "),
        ("[]", "line 2: the whole must be of type object"),
        ('{"kind": "train", "update": 1}', "line 2: the field words is missing"),
        (
            '{"kind": "weather", "update": 1, "words": 2}',
            "line 2: kind must be one of train, evaluation, not 'weather'",
        ),
        ('{"kind": "train", "update": -1, "words": 2}', "line 2: update must be at least 0, not -1"),
        ('{"kind": "train", "update": 1, "words": 2, "loss": "small"}', "line 2: metrics[...] must be of type float"),
        ("9" * 5000, "line 2"),
    ],
)
def test_any_other_damage_is_named(tmp_path: Path, line: str, message: str) -> None:
    written(tmp_path, TRAIN, end=line.encode() + b"\n" + json.dumps(TRAIN).encode() + b"\n")
    with pytest.raises(InputError) as error:
        read_metrics(tmp_path, "train")
    assert f"{tmp_path / 'metrics.jsonl'}, {message}" in str(error.value)
    assert str(error.value).endswith("correct or remove that line")


def test_a_log_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run directory"):
        read_metrics(tmp_path, "train")
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(InputError, match="is not an ordinary file"):
        read_metrics(tmp_path, "train")
    with pytest.raises(InputError, match="is not an ordinary file"):
        MetricsLog(RunDirectory(tmp_path), size=0, update=0)


@pytest.mark.parametrize("content", [None, b"", "half"])
def test_a_log_that_has_lost_lines_is_gone_on_with_and_not_filled_up(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str], content: bytes | str | None
) -> None:
    run = runs.run("run", log__checkpoint_updates=5, log__keep=3)
    run.checkpoint_paths()[-1].unlink()
    lines = run.metrics.read_bytes()
    if content is None:
        run.metrics.unlink()
    else:
        run.metrics.write_bytes(lines[: lines.index(b"\n") + 20] if content == "half" else b"")
    runs.run("run", "--resume", log__checkpoint_updates=5, log__keep=3)
    assert f"warning: {run.metrics} has lost " in capsys.readouterr().err
    kept = [(line["kind"], line["update"]) for line in map(json.loads, run.metrics.read_text().splitlines())]
    assert kept == [("evaluation", 0)] * (content == "half") + [("train", 12), ("evaluation", 12)]
