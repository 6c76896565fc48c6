"""The call `run_suite`: what is an encoder worth, from a suite file to the figure of
merit?

`python -m downstream suite` is its command.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from downstream.printing import counted, say_lines
from downstream.probe.splits import Split, read_split
from downstream.results.merit import Merit, figure_of_merit
from downstream.results.rows import Row, compared_rows
from downstream.results.table import (
    explanations,
    row_as_json,
    runs_table,
    tables_as_text,
)
from downstream.suite.jobs import Job, make_jobs, run_jobs
from downstream.suite.overlap import overlap_notes
from downstream.suite.plan import INPUTS, SuitePlan, read_suite
from downstream.tasks import LOADERS
from elmoc.command_line import run_main
from elmoc.devices import checked_device
from elmoc.errors import InputError, reading, say
from elmoc.features.dump import DumpOptions, dump_features
from elmoc.files.checksums import fingerprint
from elmoc.files.records import write_json
from elmoc.files.text import open_text
from elmoc.files.writing import locked, refuse_existing
from elmoc.model import ElmoC
from elmoc.process import available_cores
from elmoc.settings import checked, option_name


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
            description=f"of {', '.join(INPUTS)}",
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

    def kinds(self) -> list[str]:
        """The kinds of inputs that are asked for."""
        names = self.inputs.split(",")
        for name in names:
            if name not in INPUTS:
                raise InputError(
                    f"--inputs: {name!r} is not a kind of inputs; choose from "
                    f"{', '.join(INPUTS)}"
                )
        return names


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
    options = checked(options, option_name)
    out = Path(out)
    kinds = options.kinds()
    checked_device(options.device)
    vectors = options.vectors or plan.vectors
    features = options.features
    if kinds == ["vectors"]:
        model = features = None
    elif (model is None) == (features is None):
        raise InputError(
            "the suite needs one encoder: give --model DIR, or --features FILE.h5"
        )
    if not vectors and kinds != ["features"]:
        raise InputError(f"{plan.name} names no word vectors: give --vectors FILE")
    data = _read_data(plan)
    # Development and test parts.
    reported = [splits[1:] for splits in data]
    # Two suites in one folder would start each job twice.
    with locked(out / "suite.json"):
        training = None
        if model is not None:
            elmo = ElmoC.from_pretrained(model, device=options.device, precision="auto")
            training = elmo.directory.training
            sentences = _sentences(data)
            features = _dumped(elmo, sentences, out / "features")
        notes = overlap_notes(options.corpus, _sentences(reported), training)
        jobs = make_jobs(
            list(zip(plan.probes, data, strict=True)),
            vectors=vectors,
            features=features,
            device=options.device,
            out=out,
        )
        asked = [job for job in jobs if job.inputs in kinds]
        done = sum(job.result.exists() for job in asked)
        at_once = options.jobs or available_cores()
        runs = counted(len(asked), "run")
        say(f"{runs}, {done} done before, {at_once} at once: {out}")
        failed = run_jobs(asked, at_once=at_once, logs=out / "logs")
        finished = [job for job in jobs if job.result.exists()]
        result = SuiteResult(None, [], notes)
        if finished:
            result = _report(finished, model, out, notes)
    if failed:
        raise InputError(
            f"{failed} of the suite's runs failed (above): the same command runs them "
            "again"
        )
    return result


def write_sentences(plan: SuitePlan, path: Path) -> None:
    """Write the sentences of a suite, one a line, for another tool to make features
    of.
    """
    data = _read_data(plan)
    sentences = _sentences(data)
    refuse_existing(path)
    _write_lines(path, sentences)
    say(f"{path}: {counted(len(sentences), 'sentence')}")


def _read_data(plan: SuitePlan) -> list[list[Split]]:
    """The splits of each probe."""
    data = []
    for probe in plan.probes:
        # All kinds of inputs have the same data (see `read_suite`).
        fraction = probe.settings["both"].train_fraction
        splits = [
            read_split(probe.task, name, paths, probe.reader, fraction=fraction)
            for name, paths in probe.files.items()
        ]
        data.append(splits)
    return data


def _sentences(data: Sequence[Sequence[Split]]) -> list[str]:
    """The sentences of splits, each once, words joined by a blank."""
    found: dict[str, None] = {}
    for split in chain.from_iterable(data):
        lines = [" ".join(sentence.words) for sentence in split.sentences]
        found |= dict.fromkeys(lines)
    return list(found)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with open_text(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _dumped(elmo: ElmoC, sentences: Sequence[str], folder: Path) -> Path:
    """The feature file of the sentences, which is made where it is not there.

    Its name has a hash of the encoder and the sentences, so that an encoder which was
    trained further gets another.
    """
    contents = list(elmo.sentence_encoder.identity.values()) + list(sentences)
    identity = fingerprint(each.encode() for each in contents)
    features = folder / f"{identity}.h5"
    if not features.exists():
        text = folder / f"{identity}.txt"
        _write_lines(text, sentences)
        # float16 takes half the space; probes mix the layers in float32.
        dump_features(
            elmo, [(text, features)], DumpOptions(dtype="float16", resume=True)
        )
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
            line = json.loads(job.result.read_text(encoding="utf-8"))
            # Each kind of inputs may have settings of its own, and is compared all the
            # same.
            line["compared_as"] = job.probe.identity
            # Tables name an encoder by its directory; the job has read a file.
            if line["features"] and model is not None:
                line["features"]["directory"] = os.path.abspath(model)
        lines.append(json.dumps(line, ensure_ascii=False))
    _write_lines(out / "results.jsonl", lines)
    rows = compared_rows([out / "results.jsonl"], LOADERS)
    merit = figure_of_merit(rows)
    all_notes = explanations(rows) + list(notes)
    say_lines(f"\n{tables_as_text(rows, [runs_table(rows)], all_notes)}\n")
    shown = merit or "there is none without results of both and of vectors"
    say(f"figure of merit: {shown}")
    encoders = [row.with_encoder.features for row in rows if row.with_encoder]
    numbers = None
    if merit is not None:
        numbers = {**vars(merit), "shares": [asdict(each) for each in merit.shares]}
    content = {
        "encoder": encoders[0] if encoders else None,
        "merit": numbers,
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


def main(argv: Sequence[str]) -> int:
    """`python -m downstream suite SUITE.toml …`."""
    return run_main(
        SuiteCommand,
        run,
        argv,
        prog="python -m downstream suite",
        description="Run a suite of probes for one encoder, several side by side with "
        "one thread each, and end in tables of results and one figure of merit. A "
        "suite that was stopped goes on by the same command.",
    )


def run(command: SuiteCommand) -> None:
    """Run the suite, or write its sentences."""
    plan = read_suite(command.suite, data=command.data, quick=command.quick)
    if command.sentences is not None:
        write_sentences(plan, command.sentences)
        return
    out = command.out
    if out is None:
        out = Path(plan.name, _encoder_name(command))
    run_suite(plan, command.model, out, command.options)


def _encoder_name(command: SuiteCommand) -> str:
    """The name of the folder of results."""
    encoder = Path("vectors")
    if command.options.kinds() != ["vectors"]:
        given = command.model or command.options.features or encoder
        encoder = Path(os.path.abspath(given))
    name = encoder.name.removesuffix(".h5")
    if encoder.name == "model":
        # RUN/model is named by its run.
        name = encoder.parent.name
    return f"{name}-quick" if command.quick else name
