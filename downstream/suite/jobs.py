"""Jobs of a suite: one probe on one kind of inputs with one seed, its command line, and the file of its result.

A result is kept under a name that holds a hash of all that it depends on, so that a suite that goes on, or another one,
knows what is done. What reads word vectors alone is kept in the baseline folder, which all encoders share.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from downstream.inputs.kinds import INPUT_KINDS
from downstream.probe.settings import option_name
from downstream.results.records import ResultLine, parse_line, word_vectors_identity
from downstream.suite.plan import SuiteProbe
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_json
from elmoc.files.writing import atomic_path
from elmoc.version import VERSION

SECONDS = {"srl": 4.5e-4, "coref": 1.5e-4}
"""Of a probe that reads both, with one thread: for each word of the training data in each epoch, as first measured."""
OTHER_SECONDS = 1e-4
BASELINE = 0.6
"""What word vectors alone take of the time of both."""
ADVICE = "remove it, and run the suite again"


@dataclass(frozen=True)
class Sources:
    """What the probes of a suite read."""

    vectors: Sequence[str]
    features: Mapping[str, Path]
    """Name of a probe's files → its feature file."""
    identities: Mapping[str, str]
    """What tells vectors, and states, from others."""
    model: Path | None
    """The directory that the features are of, where it is known."""
    device: str
    """On which probes are trained. It is no part of a result's name, since results differ in rounding alone."""


@dataclass(frozen=True, eq=False)
class Job:
    """One probe on one kind of inputs with one seed.

    arguments  of `python -m downstream`, but for the file of results
    data       split → the fingerprints of its files
    vectors    what tells its word vectors from others; None where it reads none
    result     where its line of results is kept
    model      the directory of its encoder, where it has one
    cost       about how many seconds it takes
    """

    probe: SuiteProbe
    inputs: str
    seed: int
    arguments: Sequence[str]
    data: Mapping[str, Sequence[str]]
    vectors: str | None
    result: Path
    model: Path | None
    cost: float

    @property
    def name(self) -> str:
        """As files, bars and messages name it."""
        return f"{self.probe.file_name}.{self.inputs}.seed{self.seed}"

    @property
    def is_done(self) -> bool:
        """Whether its result is there."""
        return os.path.lexists(self.result)

    def command(self, results: Path) -> list[str]:
        """The command line that appends the line of results to a file."""
        return [sys.executable, "-m", "downstream", *self.arguments, "--results", str(results)]

    def keep(self, results: Path) -> None:
        """Keep what the command wrote; raises `InputError` where that is no line of results of this job.

        It is not where a file has changed since the suite looked at it.
        """
        line = _read(results)
        vectors = None if line["vectors"] is None else word_vectors_identity(line["vectors"])
        for changed, what in ((line["fingerprints"] != self.data, "data"), (vectors != self.vectors, "word vectors")):
            if changed:
                raise InputError(f"its {what} changed while the suite was running: run the suite again")
        line["checksum"] = _checksum(line)
        with atomic_path(self.result) as partial:
            partial.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")

    def read(self) -> dict[str, Any]:
        """Its line of results under the probe's name in the suite, and what it is to be compared with."""
        line = _read(self.result)
        if line.pop("checksum", None) != _checksum(line):
            raise InputError(f"{self.result} is damaged (its content is not what was written): {ADVICE}")
        identities = {"compared_as": self.probe.identity, "compared_before_as": self.probe.earlier_identity}
        line |= {"dataset": self.probe.name, **identities}
        if line["features"] is not None and self.model is not None:  # the file is one of many, and no name for it
            line["features"] |= {"directory": str(self.model)}
        return line


def make_jobs(
    probe: SuiteProbe,
    sources: Sources,
    *,
    inputs: Sequence[str],
    fingerprints: Mapping[str, Sequence[str]],
    words: int,
    out: Path,
    baseline: Path,
) -> list[Job]:
    """The jobs of a probe.

    Args:
        probe: of the suite.
        sources: of its inputs.
        inputs: the kinds of inputs that are run.
        fingerprints: split → those of its files.
        words: of the training data.
        out: folder of the results that depend on the encoder.
        baseline: folder of the others.
    """
    jobs = []
    for kind in (INPUT_KINDS[name] for name in inputs):
        settings = probe.settings(kind.name)
        for seed in range(1, probe.seeds[kind.name] + 1):
            depends_on = {
                "task": probe.task.name,
                "inputs": kind.name,
                "seed": seed,
                "data": fingerprints,
                "reader": asdict(probe.reader),
                "settings": probe.chosen_settings(kind.name),
                "vectors": sources.identities["vectors"] if kind.words else None,
                "states": sources.identities["states"] if kind.states else None,
                "elmoc": VERSION,
            }
            key = fingerprint(json.dumps(depends_on, sort_keys=True).encode())
            share = 1.0 if kind.states else BASELINE
            seconds = SECONDS.get(probe.task.name, OTHER_SECONDS) * words * settings.epochs
            jobs.append(
                Job(
                    probe=probe,
                    inputs=kind.name,
                    seed=seed,
                    arguments=_arguments(probe, sources, kind.name, seed),
                    data=fingerprints,
                    vectors=sources.identities["vectors"] if kind.words else None,
                    result=(out if kind.states else baseline) / f"{probe.file_name}.{kind.name}.seed{seed}.{key}.json",
                    model=sources.model if kind.states else None,
                    cost=share * seconds,
                )
            )
    return jobs


def require_writable(jobs: Sequence[Job]) -> None:
    """Raise an `InputError` for a folder to which the results of jobs that are not done cannot be written."""
    for folder in dict.fromkeys(job.result.parent for job in jobs if not job.is_done):
        try:
            with TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(
                f"results cannot be written to {folder} ({error.strerror}): get the permission, or name another folder "
                "(--out, --baseline)"
            ) from None


def _arguments(probe: SuiteProbe, sources: Sources, inputs: str, seed: int) -> list[str]:
    kind = INPUT_KINDS[inputs]
    arguments = [probe.task.name]
    for split, files in probe.files.items():
        arguments += [f"--{split}", *map(str, files)]
    arguments += ["--name", probe.name, "--inputs", inputs, "--seeds", f"{seed}-{seed}"]
    arguments += ["--device", sources.device]
    arguments += ["--vectors", *sources.vectors] if kind.words else []
    arguments += ["--features", str(sources.features[probe.file_name])] if kind.states else []
    arguments += ["--small"] if probe.preset == "small" else []
    for name, value in probe.options[inputs].items():
        if isinstance(value, bool):
            arguments.append(option_name(name if value else f"no-{name}"))
        else:
            arguments.append(f"{option_name(name)}={value}")
    return arguments


def _read(path: Path) -> dict[str, Any]:
    """The line of results of one seed that is in a file."""
    line: dict[str, Any] = read_json(path, advice=ADVICE)
    parse_line(line, ResultLine, where=str(path), advice=ADVICE)
    return line


def _checksum(line: Mapping[str, Any]) -> str:
    return fingerprint(json.dumps(line, sort_keys=True).encode())
