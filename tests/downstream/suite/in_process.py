"""Stands for `run_jobs`: the jobs of a suite, run one after the other in this process."""

from collections.abc import Sequence

from downstream.__main__ import main
from downstream.suite.jobs import Job
from downstream.suite.running import Failure, JobRunner


def run_jobs_here(jobs: Sequence[Job], runner: JobRunner, *, at_once: int) -> list[Failure]:
    """Run the jobs that are not done."""
    for job in jobs:
        if not job.is_done:
            results = job.result.with_suffix(".jsonl")
            assert main([*job.arguments, "--results", str(results)]) == 0
            job.keep(results)
            results.unlink()
    return []
