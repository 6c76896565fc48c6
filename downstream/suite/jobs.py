"""Jobs of a suite: how is each probe run on one kind of inputs with one seed, several
side by side?

A result is kept under a name that holds a hash of all that it depends on, so that a
suite that goes on, or another one, finds it. A job writes it whole, at its end. Results
of word vectors alone are kept in the baseline folder, which all encoders share.
"""

import json
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from downstream.inputs.options import INPUT_KINDS, InputKind
from downstream.inputs.sources import FeatureStates
from downstream.probe.splits import Split
from downstream.results.records import encoder_identity
from downstream.suite.plan import SuiteProbe
from elmoc.errors import say, shortened
from elmoc.files.checksums import fingerprint
from elmoc.files.writing import remove
from elmoc.jobs import start_job
from elmoc.process import progress_bar
from elmoc.stopping import handled_signals
from elmoc.version import VERSION
from elmoc.word_vectors.opening import open_word_vectors

# Seconds between two looks at the jobs that run. A job takes minutes.
POLL_SECONDS = 0.1


@dataclass(frozen=True, eq=False)
class Job:
    """One probe on one kind of inputs with one seed.

    probe: of the suite.
    kind: of its inputs.
    name: of the log file and, before a hash, of the result.
    command: options of `python -m downstream --json -`.
    result: the file of its line of results.
    words: number of words that it reads in training: a measure of how long it takes.
    data: split → hashes of its files, by which the result is found again.
    """

    probe: SuiteProbe
    kind: InputKind
    name: str
    command: Mapping[str, Any]
    result: Path
    words: int
    data: Mapping[str, list[str]]

    def is_of_its_data(self) -> bool:
        """Whether the result is of the data as it was when the suite began."""
        line = json.loads(self.result.read_text(encoding="utf-8").partition("\n")[0])
        return bool(line["fingerprints"] == self.data)


def make_jobs(
    probes: Sequence[tuple[SuiteProbe, Sequence[Split]]],
    *,
    vectors: Sequence[str],
    features: Path | None,
    device: str,
    out: Path,
) -> list[Job]:
    """The jobs of a suite, one for each probe, kind of inputs and seed.

    Args:
        probes: with their data.
        vectors: word vectors; without them there are no jobs that read any.
        features: the file with the encoder's layer states; without it there are no
            jobs that read any.
        device: where probes are trained.
        out: the folder of results. The baseline folder is beside it.
    """
    # No word is looked up here: only the fingerprints are needed.
    fingerprints = [
        open_word_vectors(origin, only=[]).fingerprint for origin in vectors
    ]
    described = FeatureStates(features, sentences=[]).described if features else {}
    jobs = []
    for (probe, splits), kind in product(probes, INPUT_KINDS.values()):
        if (kind.states and features is None) or (kind.words and not vectors):
            continue
        # Word vectors alone score the same beside every encoder.
        folder = out / "results" if kind.states else out.parent / "baseline"
        folder.mkdir(parents=True, exist_ok=True)
        settings = asdict(probe.settings[kind.name])
        words = sum(splits[0].lengths) * settings["epochs"]
        data = {split.name: split.fingerprints for split in splits}
        for seed in range(1, probe.seeds[kind.name] + 1):
            options = {
                "inputs": kind.name,
                "preset": probe.preset,
                "seeds": f"{seed}-{seed}",
                "reader": asdict(probe.reader),
                "settings": settings,
            }
            # Results that are there are found by the hash of this list: another order
            # or form of it would have all probes trained again.
            depends_on = [
                probe.task.name,
                options,
                data,
                fingerprints if kind.words else [],
                encoder_identity(described) if kind.states else "",
                VERSION,
            ]
            key = fingerprint([json.dumps(depends_on, sort_keys=True).encode()])
            name = f"{probe.file_name}.{kind.name}.seed{seed}"
            result = folder / f"{name}.{key}.json"
            command = {
                "task": probe.task.name,
                "data": {**probe.files, "name": probe.name},
                "inputs": {
                    "vectors": vectors if kind.words else [],
                    "features": features if kind.states else None,
                },
                "options": {**options, "device": device, "out": result},
            }
            jobs.append(Job(probe, kind, name, command, result, words, data))
    return jobs


def run_jobs(jobs: Sequence[Job], *, at_once: int, logs: Path) -> int:
    """Run all jobs without a result, the longest first, each in a process with one
    thread.

    A line is printed for each job that fails. On Ctrl-C all jobs are asked to stop, and
    waited for.

    Args:
        jobs: of a suite.
        at_once: the number of processes.
        logs: the folder where output goes, to NAME.log.

    Returns:
        How many failed.
    """
    waiting = [job for job in jobs if not job.result.exists()]
    # The last is taken first.
    waiting.sort(key=lambda job: job.words)
    running: dict[subprocess.Popen[bytes], Job] = {}
    failed = 0
    logs.mkdir(parents=True, exist_ok=True)
    with (
        handled_signals(),
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
                    if process.returncode:
                        failed += 1
                        bar.clear()
                        say(_failure(job, process.returncode, logs))
                    elif not job.is_of_its_data():
                        failed += 1
                        remove(job.result)
                        say(f"{job.name} failed: its data changed before it was read")
        finally:
            # All are asked before any is waited for, so that they end side by side.
            for process in running:
                process.send_signal(signal.SIGINT)
            for process in running:
                process.wait()
    return failed


def _start(job: Job, logs: Path) -> "subprocess.Popen[bytes]":
    with open(logs / f"{job.name}.log", "wb") as log:
        return start_job(
            "downstream",
            job.command,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Several jobs side by side use all cores.
            environment={"OMP_NUM_THREADS": "1"},
        )


def _failure(job: Job, status: int, logs: Path) -> str:
    """A line about a job that failed: the last line that it printed, or its signal."""
    log = logs / f"{job.name}.log"
    # Libraries may have printed anything.
    text = log.read_text(encoding="utf-8", errors="replace").rstrip()
    last = shortened(text.rpartition("\n")[2], 200)
    reason = f"signal {-status}" if status < 0 else last
    return f"{job.name} failed ({reason}): see {log}"
