"""Steps: they run in processes of their own, are skipped when finished, and a signal reaches the one that runs once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elmoc.errors import InputError
from pretrain.recipe.steps import Step, run_module, run_steps

SLOW = """\
import signal, sys, time
def stop(number, frame):
    print("asked", flush=True)
    time.sleep(0.3)
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(60)
"""
PARENT = """\
from pretrain.recipe.steps import run_module
try:
    run_module(["slow"])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_what_is_finished_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").write_text("")
    ran: list[int] = []
    steps = [
        Step("one", lambda: ran.append(1), tmp_path / "there"),
        Step("two", lambda: ran.append(2), tmp_path / "missing"),
        Step("three", lambda: ran.append(3)),
    ]
    run_steps(steps)
    assert ran == [2, 3]
    assert "step 1 of 3: one: done before" in capsys.readouterr().out


def test_a_command_that_fails_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the command above ended with status 3"):
        run_module(["fails"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command_once_and_is_waited_for(tmp_path: Path, number: int) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).resolve().parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            pass
        os.killpg(process.pid, number)  # as a terminal does; the command is in another group
        assert process.stdout.read().split() == ["asked", "interrupted"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are told of their parent's end on Linux")
def test_a_command_is_asked_to_stop_when_its_parent_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "parent.py").write_text(PARENT)
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            pass
        started = time.monotonic()
        process.kill()
        assert process.stdout.read().split() == ["asked"], "the pipe ends with the command"
        assert time.monotonic() - started < 30
