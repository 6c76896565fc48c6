"""The call `run_suite`: what is an encoder worth, from a suite file to the figure of
merit?

`python -m downstream suite` is its command.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from downstream.inputs.options import INPUT_KINDS, input_kinds
from downstream.printing import counted, say_lines
from downstream.probe.splits import Split, read_splits
from downstream.results.merit import Merit, figure_of_merit
from downstream.results.names import encoder_name
from downstream.results.rows import Row, compared_rows
from downstream.results.table import (
    EXPLANATIONS,
    result_tables,
    row_as_json,
    tables_as_text,
)
from downstream.suite.jobs import Job, make_jobs, run_jobs
from downstream.suite.overlap import overlap_notes
from downstream.suite.plan import SuitePlan, read_suite
from elmoc.command_line import run_main
from elmoc.devices import checked_device
from elmoc.errors import InputError, reading, say
from elmoc.features.dump import DumpOptions, dump_features
from elmoc.files.checksums import fingerprint
from elmoc.files.records import write_json
from elmoc.files.text import open_text
from elmoc.files.writing import atomic_path, locked, refuse_existing
from elmoc.model import ElmoC
from elmoc.process import available_cores
from elmoc.settings import checked


@dataclass(frozen=True, kw_only=True)
class SuiteOptions:
    """How a suite is run."""

    features: Annotated[
        Path | None,
        Meta(
            description="features of the sentences of --sentences, in place of a model",
            extra={"metavar": "FILE.h5"},
        ),
    ] = None
    vectors: Annotated[
        list[str],
        Meta(
            description="word vectors, in place of the suite file's",
            extra={"metavar": "V"},
        ),
    ] = field(default_factory=list)
    inputs: Annotated[
        str,
        Meta(
            description=f"of {', '.join(INPUT_KINDS)}",
            extra={"metavar": "KIND,…"},
        ),
    ] = "vectors,both"
    corpus: Annotated[
        list[Path],
        Meta(
            description="corpus in which sentences of dev and test parts are looked "
            "for (default: the corpora of the model's training)",
            extra={"metavar": "DIR", "repeat": True},
        ),
    ] = field(default_factory=list)
    jobs: (
        Annotated[
            int, Meta(ge=1, description="probes at once (default: one for each core)")
        ]
        | None
    ) = None
    device: Annotated[
        str, Meta(description="where probes are trained and features made")
    ] = "cpu"


@dataclass(frozen=True)
class SuiteResult:
    """What an encoder is worth.

    merit: the figure of merit; None without results of both and of vectors.
    rows: one for each set of data.
    notes: what a reader has to know of the numbers.
    """

    merit: Merit | None
    rows: list[Row]
    notes: list[str]


def run_suite(
    plan: SuitePlan,
    model: Path | str | None,
    out: Path | str,
    options: SuiteOptions = SuiteOptions(),
) -> SuiteResult:
    """Run the probes of a suite for one encoder, several side by side, and print tables
    and the figure of merit.

    A suite that was stopped, or had failures, goes on when it is run again.

    Args:
        plan: of `read_suite`.
        model: model or run directory, the encoder; None where `options` name a feature
            file, or word vectors alone are run.
        out: the folder of results and logs. Results of word vectors alone are kept in
            the folder `baseline` beside it, which other encoders share.
        options: how it is run.

    Raises:
        InputError: something that cannot be used, or runs that failed.
        KeyboardInterrupt: Ctrl-C; the runs are stopped before.
    """
    options = checked(options)
    out = Path(out)
    checked_device(options.device)
    kinds = input_kinds(options.inputs)
    reads_states = any(kind.states for kind in kinds)
    features = options.features
    if reads_states and (model is None) == (features is None):
        raise InputError(
            "the suite needs one encoder: give --model DIR, or --features FILE.h5"
        )
    vectors = options.vectors or plan.vectors
    if not vectors and any(kind.words for kind in kinds):
        raise InputError(f"{plan.name} names no word vectors: give --vectors FILE")
    data = _read_data(plan)
    # Two suites in one folder would start each job twice.
    with locked(out / "suite.json"):
        training = None
        # By the features of an earlier call its results are found, and reported again.
        has_features = (out / "features").exists()
        if model is not None and (reads_states or has_features):
            elmo = ElmoC.from_pretrained(model, device=options.device, precision="auto")
            training = elmo.directory.training
            features = _dumped(elmo, _sentences(data), out / "features")
        # Development and test parts.
        reported = _sentences(splits[1:] for splits in data)
        notes = overlap_notes(options.corpus, reported, training)
        jobs = make_jobs(
            list(zip(plan.probes, data, strict=True)),
            vectors=vectors,
            features=features,
            device=options.device,
            out=out,
        )
        asked = [job for job in jobs if job.kind in kinds]
        done = sum(job.result.exists() for job in asked)
        at_once = options.jobs or available_cores()
        say(
            f"{counted(len(asked), 'run')}, {done} done before, {at_once} at once: "
            f"{out}"
        )
        failed = run_jobs(asked, at_once=at_once, logs=out / "logs")
        # Other kinds of inputs may have been run before.
        finished = [job for job in jobs if job.result.exists()]
        result = _report(finished, model, out, notes) if finished else None
    if failed or result is None:
        raise InputError(
            f"{failed} of the suite's runs failed (above): the same command runs them "
            "again"
        )
    return result


def _read_data(plan: SuitePlan) -> list[list[Split]]:
    """The splits of each probe."""
    return [
        read_splits(
            probe.task,
            probe.files,
            probe.reader,
            # All kinds of inputs have the same data (see `read_suite`).
            fraction=probe.settings["both"].train_fraction,
        )
        for probe in plan.probes
    ]


def _sentences(data: Iterable[Sequence[Split]]) -> list[str]:
    """The sentences of splits, each once, words joined by a blank."""
    splits = chain.from_iterable(data)
    sentences = chain.from_iterable(split.sentences for split in splits)
    return list(dict.fromkeys(" ".join(sentence.words) for sentence in sentences))


def _dumped(elmo: ElmoC, sentences: Sequence[str], folder: Path) -> Path:
    """The feature file of the sentences, which is made where it is not there.

    Its name has a hash of the encoder and the sentences, so that an encoder which was
    trained further gets another.
    """
    contents = list(elmo.identity.values()) + list(sentences)
    features = folder / f"{fingerprint(each.encode() for each in contents)}.h5"
    if not features.exists():
        # float16 takes half the space; probes mix the layers in float32.
        options = DumpOptions(dtype="float16", resume=True)
        words = [sentence.split(" ") for sentence in sentences]
        dump_features(elmo, [(words, features)], options)
    return features


def _report(
    jobs: Sequence[Job], model: Path | str | None, out: Path, notes: Sequence[str]
) -> SuiteResult:
    """Print the tables of jobs that are done and the figure of merit; write
    `results.jsonl` and `suite.json`.
    """
    lines = []
    for job in jobs:
        with reading(job.result):
            # Suites side by side may both have run a job of the baseline.
            line = json.loads(job.result.read_bytes().partition(b"\n")[0])
            # Each kind of inputs may have settings of its own, and is compared all the
            # same. Another name of the probe may have had the same file.
            line |= {"compared_as": job.probe.identity, "dataset": job.probe.name}
            # Tables name an encoder by its directory; the job has read a file.
            if line["features"] and model is not None:
                line["features"]["directory"] = os.path.abspath(model)
        lines.append(json.dumps(line))
    with atomic_path(out / "results.jsonl", checksum=True) as partial:
        partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = compared_rows([out / "results.jsonl"])
    merit = figure_of_merit(rows)
    all_notes = EXPLANATIONS + list(notes)
    say_lines(f"\n{tables_as_text(result_tables(rows), all_notes)}\n")
    say(f"figure of merit: {merit or 'none without results of both and of vectors'}")
    content = {
        "merit": merit and {**vars(merit), "shares": list(map(vars, merit.shares))},
        "notes": all_notes,
        "rows": [row_as_json(row) for row in rows],
    }
    write_json(out / "suite.json", content)
    return SuiteResult(merit, rows, all_notes)


@dataclass(frozen=True, kw_only=True)
class SuiteCommand:
    """Options of `python -m downstream suite`."""

    suite: Annotated[
        Path,
        Meta(
            description="the probes, their data, seeds and options",
            extra={"metavar": "SUITE.toml"},
        ),
    ]
    model: Annotated[
        Path | None,
        Meta(
            description="model or run directory: the encoder",
            extra={"metavar": "DIR"},
        ),
    ] = None
    data: Annotated[
        Path | None,
        Meta(
            description="folder where the suite file's paths of data begin",
            extra={"metavar": "DIR"},
        ),
    ] = None
    quick: Annotated[
        bool, Meta(description="run the quick suite: its [probe.quick] tables")
    ] = False
    out: Annotated[
        Path | None,
        Meta(
            description="results and logs (default: SUITE/ENCODER[-quick])",
            extra={"metavar": "DIR"},
        ),
    ] = None
    sentences: Annotated[
        Path | None,
        Meta(
            description="write the suite's sentences, one a line, and run nothing",
            extra={"metavar": "FILE"},
        ),
    ] = None
    options: SuiteOptions = SuiteOptions()


def run(command: SuiteCommand) -> None:
    """Run the suite, or write its sentences."""
    plan = read_suite(command.suite, data=command.data, quick=command.quick)
    if command.sentences is not None:
        refuse_existing(command.sentences)
        sentences = _sentences(_read_data(plan))
        with open_text(command.sentences) as file:
            file.writelines(f"{sentence}\n" for sentence in sentences)
        say(f"{command.sentences}: {counted(len(sentences), 'sentence')}")
        return
    encoder = Path(command.model or command.options.features or "vectors")
    name = encoder_name(Path(os.path.abspath(encoder)))
    out = command.out or Path(plan.name, f"{name}-quick" if command.quick else name)
    run_suite(plan, command.model, out, command.options)


main = partial(
    run_main,
    SuiteCommand,
    run,
    prog="python -m downstream suite",
    description="Run a suite of probes for one encoder, several side by side with "
    "one thread each, and end in tables of results and one figure of merit. A "
    "suite that was stopped goes on by the same command.",
)
