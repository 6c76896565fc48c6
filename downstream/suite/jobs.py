"""Jobs of a suite: how is each probe run on one kind of inputs with one seed, several
side by side?

A result is kept under a name that holds a hash of all that it depends on, so that a
suite that goes on, or another one, finds it. Results of word vectors alone are kept in
the baseline folder, which all encoders share.
"""

import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from downstream.inputs.options import INPUT_KINDS, SEPARATOR
from downstream.inputs.sources import FeatureStates
from downstream.printing import say
from downstream.probe.task import Split
from downstream.results.records import encoder_identity
from downstream.suite.plan import INPUTS, SuiteProbe
from elmoc.errors import shortened
from elmoc.files.checksums import fingerprint
from elmoc.process import end_with_parent, interrupted_by_sigterm, progress_bar
from elmoc.settings import option_name
from elmoc.version import VERSION
from elmoc.word_vectors.opening import open_word_vectors

POLL_SECONDS = 0.1


@dataclass(frozen=True, eq=False)
class Job:
    """One probe on one kind of inputs with one seed.

    arguments  of `python -m downstream`, but for the file of results
    result     where its line of results is kept
    words      that it reads in training: about how long it takes
    """

    probe: SuiteProbe
    inputs: str
    name: str
    arguments: Sequence[str]
    result: Path
    words: int


def make_jobs(
    probes: Sequence[tuple[SuiteProbe, Sequence[Split]]],
    options: Namespace,
    features: Path | None,
    out: Path,
) -> list[Job]:
    """The jobs of probes and their data, one for each kind of inputs that there are and
    each seed.

    options   of the command
    features  the file with the encoder's layer states
    """
    vectors = SEPARATOR.join(
        open_word_vectors(each, only=[]).fingerprint for each in options.vectors
    )
    encoder = (
        encoder_identity(FeatureStates(features, sentences=[]).describe())
        if features
        else ""
    )
    jobs = []
    for probe, splits in probes:
        preset = ["--small"] if probe.preset == "small" else []
        files = [
            part
            for split, paths in probe.files.items()
            for part in (f"--{split}", *map(str, paths))
        ]
        data = {split.name: split.fingerprints for split in splits}
        reader = asdict(probe.reader)
        for kind in (INPUT_KINDS[name] for name in INPUTS):
            if (kind.states and not features) or (kind.words and not options.vectors):
                continue
            settings = asdict(probe.settings[kind.name])
            given = [
                probe.task.name,
                "--name",
                probe.name,
                "--inputs",
                kind.name,
                "--device",
                options.device,
            ]
            given += [
                *preset,
                *files,
                *(["--features", str(features)] if kind.states else []),
            ]
            given += ["--vectors", *options.vectors] if kind.words else []
            for option, value in (settings | reader).items():
                if isinstance(value, bool):
                    given.append(option_name(option if value else f"no-{option}"))
                else:
                    given.append(f"{option_name(option)}={value}")
            words = sum(splits[0].lengths) * settings["epochs"]
            identity = [vectors if kind.words else "", encoder if kind.states else ""]
            folder = out / "results" if kind.states else out.parent / "baseline"
            folder.mkdir(parents=True, exist_ok=True)
            for seed in range(1, probe.seeds[kind.name] + 1):
                depends_on = [
                    probe.task.name,
                    kind.name,
                    seed,
                    data,
                    reader,
                    settings,
                    identity,
                    VERSION,
                ]
                key = fingerprint([json.dumps(depends_on, sort_keys=True).encode()])
                name = f"{probe.file_name}.{kind.name}.seed{seed}"
                arguments = [*given, "--seeds", f"{seed}-{seed}"]
                jobs.append(
                    Job(
                        probe,
                        kind.name,
                        name,
                        arguments,
                        folder / f"{name}.{key}.json",
                        words,
                    )
                )
    return jobs


def run_jobs(jobs: Sequence[Job], *, at_once: int, logs: Path) -> int:
    """Run all jobs without a result, the longest first, each in a process with one
    thread.

    Output goes to NAME.log in `logs`. A line is printed for each job that fails;
    returns how many these are.
    """
    waiting = sorted(
        (job for job in jobs if not job.result.exists()), key=lambda job: job.words
    )
    running: dict[subprocess.Popen[bytes], Job] = {}
    failed = 0
    logs.mkdir(parents=True, exist_ok=True)
    with (
        interrupted_by_sigterm(),
        progress_bar(total=len(waiting), desc="suite", unit=" runs") as bar,
    ):
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    job = waiting.pop()
                    running[_start(job, logs)] = job
                time.sleep(POLL_SECONDS)
                for process in [each for each in running if each.poll() is not None]:
                    job = running.pop(process)
                    bar.update()
                    if process.returncode == 0:
                        os.replace(_partial(job), job.result)
                        continue
                    _partial(job).unlink(missing_ok=True)
                    log = logs / f"{job.name}.log"
                    last = (
                        log.read_text(encoding="utf-8", errors="replace")
                        .rstrip()
                        .rpartition("\n")[2]
                    )
                    why = (
                        f"signal {-process.returncode}"
                        if process.returncode < 0
                        else shortened(last, 200)
                    )
                    failed += 1
                    bar.clear()
                    say(f"{job.name} failed ({why}): see {log}")
        finally:
            for process in running:
                process.terminate()
            for process, job in running.items():
                process.wait()
                _partial(job).unlink(missing_ok=True)
    return failed


def _start(job: Job, logs: Path) -> "subprocess.Popen[bytes]":
    with open(logs / f"{job.name}.log", "wb") as log:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "downstream",
                *job.arguments,
                "--results",
                str(_partial(job)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            preexec_fn=partial(end_with_parent, os.getpid()),
        )


def _partial(job: Job) -> Path:
    """The file of a result that is not whole: beside the result, which takes its place."""
    return job.result.with_name(f".{job.result.stem}.{os.getpid()}.jsonl")
