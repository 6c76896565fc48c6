"""Stopping: each signal ends a command with its status and one line, and nothing else is changed by it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from elmoc.errors import run_command
from elmoc.stopping import Stopped, handled_signals, noted_signals
from tests.elmoc.test_jobs import MODULE

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A command that is stopped while it writes, and after it, as by `timeout`, while it tidies up.
STOPPED = """
import os, sys
from dataclasses import dataclass
from elmoc.command_line import run_main
from elmoc.files.writing import atomic_path
from elmoc.process import progress_bar

@dataclass
class Options:
    number: str

def run(options):
    number = int(options.number)
    bar = progress_bar(total=3)
    with atomic_path("out") as partial:
        try:
            partial.write_text("half")
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)

sys.exit(run_main(Options, run, None, prog="x", description=""))
"""


@pytest.fixture(autouse=True)
def restore_signals() -> Iterator[None]:
    before = [signal.signal(number, signal.SIG_DFL) for number in NUMBERS]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(NUMBERS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "how"), [(15, "stopped by SIGTERM"), (1, "stopped by SIGHUP")], ids=["SIGTERM", "SIGHUP"]
)
def test_a_command_that_is_stopped_leaves_nothing_and_says_how_to_go_on(tmp_path: Path, number: int, how: str) -> None:
    words = [sys.executable, "-c", STOPPED, str(number)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + number
    assert done.stderr.endswith(f"\n{how}: give the same command again\n"), "a line of its own, below the bar"
    assert os.listdir(tmp_path) == []


def test_handlers_are_those_of_before_and_an_ignored_hangup_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    with noted_signals() as noted, handled_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(Stopped, match="15"):
            os.kill(os.getpid(), signal.SIGTERM)
    assert noted == []
    assert run_command(lambda: os.kill(os.getpid(), signal.SIGTERM)) == 143
    handlers = [signal.getsignal(number) for number in NUMBERS]
    assert handlers == [signal.default_int_handler, signal.SIG_DFL, signal.SIG_IGN]


def test_a_run_that_saves_is_broken_off_by_a_third_request_alone() -> None:
    with noted_signals() as noted:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert max(noted) == signal.SIGTERM
        with pytest.raises(Stopped):
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("closed", ["0", "1", "2", "12", "012"])
def test_commands_work_with_closed_streams(tmp_path: Path, closed: str) -> None:
    code = f"import os, sys\n[os.close(int(each)) for each in {closed!r}]\nos.execv(sys.executable, sys.argv[1:])"
    for does, status in (("show", 0), ("fail", 1)):
        words = [sys.executable, "-c", code, sys.executable, "-m", MODULE, "--does", does]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert done.stdout == ("" if "1" in closed or status else "line of . ()\n")
        assert ("error: nothing to do" in done.stderr) == (status == 1 and "2" not in closed)
        assert "Traceback" not in done.stderr
