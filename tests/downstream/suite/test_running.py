"""Running of jobs: side by side, longest first; failures stop nothing, and nothing is left of a stopped suite."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from downstream.suite.running import JobRunner, run_jobs

PYTHON = [sys.executable, "-I", "-S", "-c"]
WRITE = "import sys; open(sys.argv[1], 'w').write('a result')"
SLEEP = "import sys, time; open(sys.argv[1], 'w').write('half'); time.sleep(60)"


class FakeJob(SimpleNamespace):
    """A job whose process is a short program."""

    __hash__ = object.__hash__

    def __init__(self, folder: Path, name: str, program: str = WRITE, cost: float = 1.0) -> None:
        super().__init__(name=name, cost=cost, program=program, kept=folder / f"{name}.kept")

    @property
    def is_done(self) -> bool:
        return self.kept.exists()

    def command(self, results: Path) -> list[str]:
        return [*PYTHON, self.program, str(results)]

    def keep(self, results: Path) -> None:
        self.kept.write_text(results.read_text())


def run(folder: Path, jobs: list[Any], *, at_once: int = 2) -> tuple[list[str], list[str]]:
    """What was said, and the order in which logs were opened."""
    said: list[str] = []
    run_jobs(jobs, JobRunner(folder), at_once=at_once, say=said.append)
    logs = sorted((folder / "logs").iterdir(), key=lambda log: log.stat().st_ctime_ns)
    return said, [log.stem for log in logs]


def test_all_are_run_the_longest_first_but_those_that_are_done(tmp_path: Path) -> None:
    jobs = [FakeJob(tmp_path, f"job{cost}", cost=cost) for cost in (1, 3, 2, 9)]
    jobs[3].kept.touch()
    said, order = run(tmp_path, jobs, at_once=1)
    assert said == []
    assert order == ["job3", "job2", "job1"]
    assert all(job.kept.read_text() == "a result" for job in jobs[:3])
    assert list((tmp_path / "running").iterdir()) == []


@pytest.mark.parametrize("at_once", [1, 2])
def test_as_many_run_at_once_as_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    running = []

    def noted(runner: JobRunner, job: Any) -> None:
        start(runner, job)
        running.append(runner.running)

    start = JobRunner.start
    monkeypatch.setattr(JobRunner, "start", noted)
    monkeypatch.setattr("downstream.suite.running.POLL_SECONDS", 0.01)
    run(tmp_path, [FakeJob(tmp_path, f"job{number}") for number in range(3)], at_once=at_once)
    assert len(running) == 3
    assert max(running) == at_once


def test_a_job_that_another_suite_has_done_meanwhile_is_passed_over(tmp_path: Path) -> None:
    waiting = FakeJob(tmp_path, "waiting")
    first = FakeJob(tmp_path, "first", f"{WRITE}; open({str(waiting.kept)!r}, 'w')", cost=2)
    said, order = run(tmp_path, [waiting, first], at_once=1)
    assert said == []
    assert order == ["first"]
    assert waiting.kept.read_text() == ""


def test_failed_jobs_are_one_sentence_each_and_the_others_go_on(tmp_path: Path) -> None:
    programs = {
        "refused": "import sys; print('reading'); sys.exit('error: x.conll, line 3 is damaged: correct it')",
        "broken": "1 / 0",
        "killed": "import os; print('epoch 1', flush=True); os.kill(os.getpid(), 9)",
        "silent": "pass",
        "good": WRITE,
    }
    jobs = [FakeJob(tmp_path, name, program) for name, program in programs.items()]
    said, _ = run(tmp_path, jobs)
    log = {name: tmp_path / "logs" / f"{name}.log" for name in programs}
    assert sorted(said) == [
        f"broken failed (ZeroDivisionError: division by zero): see {log['broken']}",
        f"killed failed (signal 9): see {log['killed']}",
        f"refused failed (x.conll, line 3 is damaged: correct it): see {log['refused']}",
        f"silent left no result ({tmp_path / 'running/silent.jsonl'}: No such file or directory: check the name): see "
        f"{log['silent']}",
    ]
    assert jobs[-1].is_done


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_suite_ends_its_jobs_and_goes_on_later(tmp_path: Path, number: signal.Signals) -> None:
    jobs = [FakeJob(tmp_path, "quick", cost=2), FakeJob(tmp_path, "slow", SLEEP)]
    runner = JobRunner(tmp_path)

    def interrupt() -> None:
        while not (jobs[0].is_done and (tmp_path / "running/slow.jsonl").exists()):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, runner, at_once=2)  # type: ignore[arg-type]
    assert runner.running == 0
    assert list((tmp_path / "running").iterdir()) == []
    assert jobs[0].is_done
    jobs[1].program = WRITE
    run(tmp_path, jobs)
    assert jobs[1].is_done


def test_jobs_end_with_a_suite_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from downstream.suite.running import JobRunner, run_jobs\n"
        "from tests.downstream.suite.test_running import SLEEP, FakeJob\n"
        "folder = Path(sys.argv[1])\n"
        "job = FakeJob(folder, 'slow', 'import os; print(os.getpid(), flush=True)\\n' + SLEEP)\n"
        "run_jobs([job], JobRunner(folder), at_once=1)\n"
    )
    root = Path(__file__).parents[3]
    suite = subprocess.Popen([sys.executable, "-c", program, tmp_path], cwd=root, stderr=subprocess.DEVNULL)
    log = tmp_path / "logs/slow.log"
    while not (log.exists() and log.read_text().endswith("\n")):
        assert suite.poll() is None
        time.sleep(0.05)
    suite.kill()
    suite.wait()
    job = Path("/proc", log.read_text().strip(), "stat")
    for _ in range(200):
        if not job.exists() or job.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the job goes on")
