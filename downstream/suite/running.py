"""Running of jobs: several processes side by side with one thread each, longest first, and what becomes of them."""

import os
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from elmoc.errors import InputError, describe_error, reason, shortened
from elmoc.process import end_with_parent, interrupted_by_sigterm
from elmoc.progress import progress_bar
from elmoc.settings import counted

if TYPE_CHECKING:
    from downstream.suite.jobs import Job

POLL_SECONDS = 0.1
STOP_SECONDS = 10
"""How long a process may take to end that was asked to."""
BAR = "{desc}: {percentage:3.0f}% |{bar}| {elapsed}, about {remaining} left{postfix}"


@dataclass(frozen=True)
class Failure:
    """A job that failed, and one sentence about it."""

    job: "Job"
    sentence: str


class JobRunner:
    """Runs jobs as processes.

    Their output goes to `logs`/NAME.log, and their results to `running` until they are whole.
    """

    def __init__(self, folder: Path) -> None:
        self._logs, self._results = folder / "logs", folder / "running"
        self._processes: dict[Job, subprocess.Popen[bytes]] = {}

    @property
    def running(self) -> int:
        """How many jobs are running."""
        return len(self._processes)

    def log(self, job: "Job") -> Path:
        """The file that has the output of a job."""
        return self._logs / f"{job.name}.log"

    def start(self, job: "Job") -> None:
        """Start a job."""
        for folder in (self._logs, self._results):
            folder.mkdir(parents=True, exist_ok=True)
        self._result(job).unlink(missing_ok=True)
        with open(self.log(job), "wb") as log:
            self._processes[job] = subprocess.Popen(
                job.command(self._result(job)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                preexec_fn=partial(end_with_parent, os.getpid()),
            )

    def ended(self) -> Iterator[tuple["Job", Failure | None]]:
        """The jobs that have ended since the last call, their results kept; failed ones with the reason."""
        for job, process in list(self._processes.items()):
            if process.poll() is not None:
                del self._processes[job]
                yield job, self._finish(job, process.returncode)

    def stop(self) -> None:
        """End all jobs that are running; their results are lost."""
        for process in self._processes.values():
            with suppress(OSError):
                process.terminate()
        end = time.monotonic() + STOP_SECONDS
        for job, process in self._processes.items():
            try:
                process.wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._result(job).unlink(missing_ok=True)
        self._processes.clear()

    def _result(self, job: "Job") -> Path:
        return self._results / f"{job.name}.jsonl"

    def _finish(self, job: "Job", status: int) -> Failure | None:
        result = self._result(job)
        try:
            if status:
                said = f"signal {-status}" if status < 0 else self._last_error(job) or f"exit status {status}"
                return Failure(job, f"{job.name} failed ({said}): see {self.log(job)}")
            job.keep(result)
        except (InputError, OSError) as error:
            return Failure(job, f"{job.name} left no result ({describe_error(error)}): see {self.log(job)}")
        finally:
            result.unlink(missing_ok=True)
        return None

    def _last_error(self, job: "Job") -> str:
        """What the job said was wrong: the sentence that its command ends with, or the last line of a traceback."""
        content = self.log(job).read_bytes()[-100_000:].decode("utf-8", "replace")
        lines = [line for line in content.splitlines() if line.strip()]
        said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines
        return shortened(reason(said[-1]), 200) if said else ""


def run_jobs(
    jobs: Sequence["Job"], runner: JobRunner, *, at_once: int, say: Callable[[str], object] = print
) -> list[Failure]:
    """Run all jobs that are not done, and return those that failed; `say` is told of each when it fails."""
    waiting = deque(sorted((job for job in jobs if not job.is_done), key=lambda job: -job.cost))
    total, failures = len(waiting), list[Failure]()
    if not total:
        return failures
    with (
        interrupted_by_sigterm(),
        progress_bar(total=sum(job.cost for job in waiting), desc=counted(total, "run"), bar_format=BAR) as progress,
    ):
        try:
            while waiting or runner.running:
                while waiting and runner.running < at_once:
                    if (job := waiting.popleft()).is_done:  # by another suite, which shares the baseline
                        progress.update(job.cost)
                    else:
                        runner.start(job)
                time.sleep(POLL_SECONDS)
                for job, failure in runner.ended():
                    progress.set_postfix_str(f"{total - len(waiting) - runner.running} done", refresh=False)
                    progress.update(job.cost)
                    if failure:
                        failures.append(failure)
                        progress.clear()
                        say(failure.sentence)
        finally:
            runner.stop()
    return failures
