"""Run directories and their logs: nothing of another run is written over, and half a line is passed over."""

import json
import shutil
from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.files.checksums import check_beside
from pretrain.run.directory import MetricsLog, RunDirectory, read_metrics
from tests.conftest import Fails
from tests.pretrain.conftest import TinyRuns

TRAIN = {"kind": "train", "update": 3, "words": 60, "loss": 0.5, "words_per_second": None}
EVALUATION = {"kind": "evaluation", "update": 3, "words": 60, "cosine": 0.25}


def test_what_a_run_has_left_is_not_written_over(runs: TinyRuns, error_line: Fails) -> None:
    run = runs.run("run")
    for left in (run.config, run.checkpoints, run.metrics, run.model):
        before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
        assert str(run.path if left == run.config else left) in error_line(runs.status("run"))
        assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
        shutil.rmtree(left) if left.is_dir() else left.unlink()


@pytest.mark.parametrize("end", [b"", b"{", b'{"kind": "train", "upd\xc3', b"\0" * 4096])
def test_a_last_line_that_a_kill_broke_off_is_passed_over(tmp_path: Path, end: bytes) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in (TRAIN, EVALUATION)).encode()
    (tmp_path / "metrics.jsonl").write_bytes(lines + end)
    assert read_metrics(tmp_path, "train") == [TRAIN]
    assert read_metrics(tmp_path, "evaluation") == [EVALUATION]
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, size=len(lines) + len(end))
    log.write("train", 4, 80, {"loss": 0.25})
    log.close()
    assert [line["update"] for line in read_metrics(tmp_path, "train")] == [3, 4]
    assert check_beside(path)
    open_again = MetricsLog(path, size=path.stat().st_size)
    assert not check_beside(path), "while it grows it has no checksum"
    open_again.close()
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.35"))
    with pytest.raises(InputError, match=r"metrics\.jsonl is damaged"):
        MetricsLog(path, size=0)


@pytest.mark.parametrize(
    "line", ["{}", "[]", '{"kind": 1}', '{"kind": "train", "update": 3}', '{"kind": "evaluation", "cosine": []}']
)
def test_a_damaged_log_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=r"metrics\.jsonl"):
        read_metrics(tmp_path, "train")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("start.json", "{}"),
        ("start.json", "[]"),
        ("start.json", '{"init_from": 3}'),
        ("config.json", "[]"),
        ("config.json", '{"train": 3}'),
        ("config.json", '{"encoder": {"kind": {}}}'),
    ],
)
def test_a_damaged_record_of_a_run_is_named(runs: TinyRuns, error_line: Fails, name: str, content: str) -> None:
    run = RunDirectory(runs.folder / "run")
    run.checkpoints.mkdir(parents=True)
    run.start(runs.setup().config, None)
    (run.path / name).write_text(content)
    error = error_line(runs.status("run", "--resume"))
    assert str(run.path / name) in error
    assert "unexpected" not in error
