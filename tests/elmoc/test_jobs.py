"""Jobs: commands in processes of their own, with real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from elmoc.errors import InputError, quiet
from elmoc.jobs import run_job
from tests.elmoc.a_job import Inner, JobOptions

MODULE = "tests.elmoc.a_job"
# A process that runs a job which waits to be asked, and says how that ended.
WAITS = f"""
import signal
from elmoc.jobs import run_job
try:
    run_job("{MODULE}", {{"does": "wait", "inner": {{"path": "said"}}}})
except KeyboardInterrupt:
    print("stopped", signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""


def test_what_a_job_prints_is_shown_with_a_bar_of_this_process(capfd: pytest.CaptureFixture[str]) -> None:
    # The name of the file is not UTF-8.
    options = JobOptions(does="show", count=30, words=("a b", "é\n"), inner=Inner(Path("x \udce9")))
    run_job(MODULE, options)
    output, shown = capfd.readouterr()
    assert output == "line of x \\udce9 ('a b', 'é\\n')\n" * 30
    assert "counting: 100%" in shown
    assert "30/30" in shown
    assert "a note\n" in shown
    assert "{" not in shown


def test_a_quiet_job_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet():
        run_job(MODULE, {"does": "show", "count": 3})
        with pytest.raises(InputError, match=r"^nothing to do$"):
            run_job(MODULE, {"does": "fail"})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"does": "fail"}, "^nothing to do$"),
        ({"cuont": 1}, "unknown key cuont"),
        ({"does": "die"}, "ended with status -9$"),
    ],
)
def test_a_job_that_fails_says_why(options: dict[str, object], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=message):
        run_job(MODULE, options)
    assert capfd.readouterr().err == ""


def test_a_job_runs_outside_the_main_thread(capfd: pytest.CaptureFixture[str]) -> None:
    thread = Thread(target=run_job, args=(MODULE, {"does": "show"}))
    thread.start()
    thread.join()
    assert capfd.readouterr().out == "line of . ()\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("in_background", [False, True])
def test_a_job_is_asked_to_stop_once_and_waited_for(tmp_path: Path, number: int, in_background: bool) -> None:
    # A shell starts what it runs in the background so that it ignores Ctrl-C.
    before = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" if in_background else ""
    if in_background and number == signal.SIGINT:
        pytest.skip("a process in the background is not interrupted")
    command = [sys.executable, "-c", before + WAITS]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "runs\n"
        # As a terminal does; the job is in another group.
        os.killpg(parent.pid, number)
        rest = parent.stdout.read()
    said = tmp_path / "said"
    wait_for(lambda: said.exists() and said.read_text().endswith("saved\n"))
    if number == signal.SIGKILL:
        # Once for each thread of the process that ended.
        assert set(said.read_text().splitlines()) == {"asked by SIGHUP", "saved"}
    else:
        assert rest == "stopped True\n"
        assert said.read_text() == "asked by SIGINT\nsaved\n"


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, ten seconds at most."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
