"""`python -m downstream suite`: a suite of probes for one encoder, from the suite file to the figure of merit."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.source_options import add_model_options, require_model
from downstream.suite.data import (
    ProbeData,
    describe_features,
    dump_features,
    read_data,
    suite_identity,
    write_sentences,
)
from downstream.suite.entries import INPUTS
from downstream.suite.given import Given, open_given
from downstream.suite.jobs import Job, Sources, make_jobs, require_writable
from downstream.suite.overlap import overlap_notes
from downstream.suite.plan import Suite, Tasks, read_suite
from downstream.suite.report import REPORT, encoder_of_report, require_own_report, write_report
from downstream.suite.running import Failure, JobRunner, run_jobs
from elmoc.devices import checked_device
from elmoc.encoders.pooling import POOLINGS
from elmoc.errors import InputError
from elmoc.files.locks import locked
from elmoc.process import available_cores
from elmoc.settings import counted

DEFAULT_INPUTS = "vectors,both"


def run_suite(arguments: Sequence[str], tasks: Tasks) -> None:
    """`python -m downstream suite SUITE.toml …`; `tasks` are those there are."""
    options = _parse(arguments)
    suite = read_suite(options.suite, tasks, data=options.data, quick=options.quick)
    if options.sentences:
        count = write_sentences(options.sentences, suite.probes)
        print(f"{options.sentences}: {counted(count, 'sentence')}")
        return
    vectors = options.vectors or suite.vectors
    if not vectors and options.inputs != ["features"]:
        raise InputError(f"{suite.path} names no word vectors: give --vectors FILE")
    out = options.out or _default_out(options)
    with locked(out / REPORT):
        failures = _run(suite, options, tasks, out=out, vectors=vectors)
    if failures:
        raise InputError(
            f"{len(failures)} of the suite's runs failed, the first of them {failures[0].job.name} (above, and in "
            f"{out / 'logs'}): correct that, and the same command runs them again"
        )


@dataclass(frozen=True)
class _States:
    """The feature files of the probes by name, and what they say of their encoder; empty without one."""

    files: Mapping[str, Path]
    encoder: dict[str, Any] | None
    identity: str


def _run(
    suite: Suite, options: argparse.Namespace, tasks: Tasks, *, out: Path, vectors: Sequence[str]
) -> list[Failure]:
    results, baseline = out / "results", options.baseline or out.parent / "baseline"
    for folder in (results, baseline):
        folder.mkdir(parents=True, exist_ok=True)
    given = open_given(options, vectors)
    if given.model is not None:
        require_own_report(out / REPORT, {**given.model, "directory": str(options.model)})
    elif options.encoder is not None:
        require_own_report(out / REPORT, describe_features(options.features)[0])
    data = {probe.file_name: read_data(probe) for probe in suite.probes}
    states = _states(options, given, data, out)
    if states.encoder is None and encoder_of_report(out / REPORT):
        raise InputError(
            f"{out} has the results of an encoder, and its table would be without them: give word vectors alone "
            "another --out"
        )
    sources = Sources(
        model=options.model and Path(os.path.abspath(options.model)),
        vectors=vectors,
        features=states.files,
        identities={"vectors": given.vectors, "states": states.identity},
        device=options.device,
    )
    jobs: list[Job] = []
    for probe in suite.probes:
        jobs += make_jobs(
            probe,
            sources,
            inputs=[
                name
                for name in INPUTS
                if (vectors or not INPUT_KINDS[name].words) and (states.files or not INPUT_KINDS[name].states)
            ],
            fingerprints=data[probe.file_name].fingerprints,
            words=data[probe.file_name].words,
            out=results,
            baseline=baseline,
        )
    asked = [job for job in jobs if job.inputs in options.inputs]
    require_writable(asked)
    notes = [*given.notes, *(note for corpus in given.corpora for note in overlap_notes(data, corpus, baseline))]
    identity = suite_identity(suite.probes, data, given.vectors)
    del data
    before = sum(job.is_done for job in asked)
    print(
        f"{counted(len(asked), 'run')} of {counted(len(suite.probes), 'probe')}, {before} done before, "
        f"{options.jobs} at once: {out}",
        flush=True,
    )
    failures = run_jobs(asked, JobRunner(out), at_once=options.jobs)
    missing = [job.name for job in asked if not job.is_done]
    notes += [f"Missing: {', '.join(missing)}."] if missing else []
    done = [job for job in jobs if job.is_done]
    write_report(suite, done, out, tasks, identity=identity, encoder=states.encoder, notes=notes)
    return failures


def _states(options: argparse.Namespace, given: Given, data: Mapping[str, ProbeData], out: Path) -> _States:
    """Layer states for the probes: dumped from the model, or those of a feature file that is given."""
    if options.encoder is None:
        return _States({}, None, "")
    if given.model is None:
        files = dict.fromkeys(data, options.features)
    else:
        files = dump_features(
            options.model,
            data,
            out / "features",
            described=given.model,
            vectors=options.model_vectors,
            pooling=options.pooling,
            threads=options.jobs,
            device=options.device,
        )
    encoder, identity = describe_features(next(iter(files.values())))
    return _States(files, encoder, identity)


def _default_out(options: argparse.Namespace) -> Path:
    """A folder named after the suite, in the working directory, and in it one named after the encoder.

    Of another pooling than the default it is another, as its report would take the place of that.
    """
    path = Path(os.path.abspath(options.encoder or "vectors"))
    name = path.parent.name if path.name == "model" else path.name.removesuffix(".h5")
    pooling = f"-{options.pooling}" if options.pooling not in (None, POOLINGS[0]) else ""
    return Path(options.suite.stem) / f"{name}{pooling}{'-quick' if options.quick else ''}"


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m downstream suite",
        description="Run a suite of probes for one encoder, several side by side with one thread each, and end in one "
        "table and one figure of merit. A suite that was stopped goes on by the same command.",
    )
    parser.add_argument("suite", type=Path, metavar="SUITE.toml", help="the probes, their data, seeds and options")
    states = parser.add_mutually_exclusive_group()
    states.add_argument("--model", type=Path, metavar="DIR", help="model or run directory: the encoder")
    states.add_argument("--features", type=Path, metavar="FILE.h5", help="features of the sentences of --sentences")
    add_model_options(parser)
    parser.add_argument(
        "--vectors", nargs="+", metavar="V", help="word vectors of the probes, in place of the suite file's"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="what paths of data in the suite file are relative to")
    parser.add_argument("--quick", action="store_true", help="run the quick suite: its [probe.quick] tables")
    parser.add_argument(
        "--inputs", default=DEFAULT_INPUTS, metavar="KIND,…", help=f"of {', '.join(INPUTS)} (default: {DEFAULT_INPUTS})"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="results and logs (default: SUITE/ENCODER[-POOLING][-quick])"
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        action="append",
        metavar="DIR",
        help="corpus of the pretraining text, in which sentences of dev and test parts are looked for; once for each "
        "(default: those that the model's training record names, as far as they are there)",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="DIR", help="results of word vectors alone (default: baseline beside --out)"
    )
    cores = available_cores()
    parser.add_argument("--jobs", type=int, default=cores, metavar="N", help=f"probes at once (default: {cores})")
    parser.add_argument(
        "--device", default="cpu", help="where probes are trained and features made: cpu (default), cuda or cuda:N"
    )
    parser.add_argument(
        "--sentences", type=Path, metavar="FILE", help="write the suite's sentences there, one a line, and run nothing"
    )
    options = parser.parse_args(arguments)
    if not 1 <= options.jobs <= 1024:
        raise InputError(f"--jobs {options.jobs} is not possible: give 1 to 1024 processes")
    options.inputs = list(dict.fromkeys(options.inputs.split(",")))
    for name in options.inputs:
        if name not in INPUTS:
            raise InputError(f"--inputs: {name!r} is not a kind of inputs; choose from {', '.join(INPUTS)}")
    checked_device(options.device)
    require_model(options)
    options.encoder = None if options.inputs == ["vectors"] else options.model or options.features
    if not (options.encoder or options.sentences or options.inputs == ["vectors"]):
        raise InputError("the suite has no encoder: give --model DIR, or --features FILE.h5")
    return options
