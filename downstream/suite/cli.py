"""`python -m downstream suite`: what is an encoder worth, from the suite file to the
figure of merit?
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from downstream.printing import counted, say
from downstream.probe.task import Split, read_split
from downstream.results.merit import figure_of_merit
from downstream.results.rows import Tasks, compared_rows
from downstream.results.table import (
    explanations,
    row_as_json,
    runs_table,
    tables_as_text,
)
from downstream.suite.jobs import Job, make_jobs, run_jobs
from downstream.suite.plan import INPUTS, read_suite
from elmoc.corpus import Corpus
from elmoc.devices import checked_device
from elmoc.errors import InputError, reading
from elmoc.files.checksums import fingerprint
from elmoc.files.records import write_json
from elmoc.files.text import open_text
from elmoc.files.writing import locked, refuse_existing
from elmoc.model import ElmoC
from elmoc.process import available_cores
from elmoc.sharing.model_card import trainings_of
from elmoc.text.overlap import Overlap, overlapping_sentences


def run_suite(arguments: Sequence[str], tasks: Tasks) -> None:
    """`python -m downstream suite SUITE.toml …`; `tasks` are those there are."""
    options = _parse(arguments)
    vectors, probes = read_suite(
        options.suite, tasks, data=options.data, quick=options.quick
    )
    options.vectors = options.vectors or vectors
    data = []
    for probe in probes:
        fraction = probe.settings["both"].train_fraction
        data.append(
            [
                read_split(probe.task, *named, probe.reader, fraction=fraction)
                for named in probe.files.items()
            ]
        )
    sentences = _sentences(split for splits in data for split in splits)
    if options.sentences:
        refuse_existing(options.sentences)
        _write_lines(options.sentences, sentences)
        say(f"{options.sentences}: {counted(len(sentences), 'sentence')}")
        return
    if not options.vectors and options.inputs != ["features"]:
        raise InputError(f"{options.suite} names no word vectors: give --vectors FILE")
    encoder = Path(os.path.abspath(options.model or options.features or "vectors"))
    name = (
        encoder.parent.name
        if encoder.name == "model"
        else encoder.name.removesuffix(".h5")
    )
    out = options.out or Path(
        options.suite.stem, f"{name}-quick" if options.quick else name
    )
    reported = _sentences(split for splits in data for split in splits[1:])
    with locked(out / "suite.json"):
        notes, features = _encoder(options, out / "features", sentences, reported)
        jobs = make_jobs(list(zip(probes, data, strict=True)), options, features, out)
        asked = [job for job in jobs if job.inputs in options.inputs]
        done = sum(job.result.exists() for job in asked)
        say(
            f"{counted(len(asked), 'run')}, {done} done before, {options.jobs} at once: {out}"
        )
        failed = run_jobs(asked, at_once=options.jobs, logs=out / "logs")
        if finished := [job for job in jobs if job.result.exists()]:
            _report(options, finished, out, tasks, notes)
    if failed:
        raise InputError(
            f"{failed} of the suite's runs failed (above): the same command runs them again"
        )


def _sentences(splits: Iterable[Split]) -> list[str]:
    """The sentences of splits, each once, words joined by a blank."""
    return list(
        dict.fromkeys(
            " ".join(sentence.words) for split in splits for sentence in split.sentences
        )
    )


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with open_text(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _encoder(
    options: argparse.Namespace,
    folder: Path,
    sentences: Sequence[str],
    reported: Sequence[str],
) -> tuple[list[str], Path | None]:
    """Notes on what of the reported sentences the encoder has read, and the feature
    file of all sentences.

    That of a model is made where it is not there.
    """
    if not options.model:
        return overlap_notes(options.corpus or [], reported, None), options.features
    model = ElmoC.from_pretrained(
        options.model, device=options.device, precision="auto"
    )
    notes = overlap_notes(options.corpus or [], reported, model.directory.training)
    identity = fingerprint(
        each.encode() for each in (*model.sentence_encoder.identity.values(), *sentences)
    )
    features = folder / f"{identity}.h5"
    text = folder / f"{identity}.txt"
    if not features.exists():
        _write_lines(text, sentences)
        command = [
            sys.executable,
            "-m",
            "elmoc",
            "dump-features",
            options.model,
            text,
            features,
            "--dtype",
            "float16",
        ]
        command += ["--resume", "--device", options.device]
        if subprocess.run(
            list(map(str, command)),
            env=os.environ | {"OMP_NUM_THREADS": str(options.jobs)},
        ).returncode:
            raise InputError(
                f"the features of {options.model} were not made (see above)"
            )
    return notes, features


def _report(
    options: argparse.Namespace,
    jobs: Sequence[Job],
    out: Path,
    tasks: Tasks,
    notes: Sequence[str],
) -> None:
    """Print the table of jobs that are done and the figure of merit; write
    `results.jsonl` and `suite.json`.
    """
    lines = []
    for job in jobs:
        with reading(job.result):
            line = json.loads(job.result.read_text(encoding="utf-8")) | {
                "compared_as": job.probe.identity
            }
        if line["features"] and options.model:
            line["features"]["directory"] = os.path.abspath(options.model)
        lines.append(json.dumps(line, ensure_ascii=False))
    _write_lines(out / "results.jsonl", lines)
    rows = compared_rows([out / "results.jsonl"], tasks)
    merit = figure_of_merit(rows)
    notes = [*explanations(rows), *notes]
    say("\n" + tables_as_text(rows, [runs_table(rows)], notes) + "\n")
    say(
        f"figure of merit: {merit or 'there is none without results of both and of vectors'}"
    )
    content = {
        "encoder": next(
            (row.with_encoder.features for row in rows if row.with_encoder), None
        ),
        "merit": merit
        and {**vars(merit), "shares": [asdict(share) for share in merit.shares]},
        "notes": notes,
        "rows": [row_as_json(row) for row in rows],
    }
    write_json(out / "suite.json", content)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m downstream suite",
        description="Run a suite of probes for one encoder, several side by side with one thread each, and end in "
        "tables of results and one figure of merit. A suite that was stopped goes on by the same command.",
    )
    parser.add_argument(
        "suite",
        type=Path,
        metavar="SUITE.toml",
        help="the probes, their data, seeds and options",
    )
    states = parser.add_mutually_exclusive_group()
    states.add_argument(
        "--model", type=Path, metavar="DIR", help="model or run directory: the encoder"
    )
    states.add_argument(
        "--features",
        type=Path,
        metavar="FILE.h5",
        help="features of the sentences of --sentences",
    )
    parser.add_argument(
        "--vectors",
        nargs="+",
        metavar="V",
        help="word vectors, in place of the suite file's",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder where the suite file's paths of data begin",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run the quick suite: its [probe.quick] tables",
    )
    parser.add_argument(
        "--inputs",
        default="vectors,both",
        metavar="KIND,…",
        help="of vectors, features, both (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="results and logs (default: SUITE/ENCODER[-quick])",
    )
    text = "corpus in which sentences of dev and test parts are looked for (default: what the model was trained on)"
    parser.add_argument(
        "--corpus", type=Path, action="append", metavar="DIR", help=text
    )
    cores = available_cores()
    parser.add_argument(
        "--jobs",
        type=int,
        default=cores,
        metavar="N",
        help=f"probes at once (default: {cores})",
    )
    parser.add_argument(
        "--device",
        default="cpu",
        help="where probes are trained and features made (default: cpu)",
    )
    text = "write the suite's sentences there, one a line, and run nothing"
    parser.add_argument("--sentences", type=Path, metavar="FILE", help=text)
    options = parser.parse_args(arguments)
    options.inputs = options.inputs.split(",")
    if unknown := set(options.inputs) - set(INPUTS):
        parser.error(
            f"--inputs: {unknown.pop()!r} is not a kind of inputs; choose from {', '.join(INPUTS)}"
        )
    if options.jobs < 1:
        parser.error("--jobs: at least one process is needed")
    checked_device(options.device)
    if options.inputs == ["vectors"]:
        options.model = options.features = None
    elif not (options.model or options.features or options.sentences):
        parser.error(
            "the suite has no encoder: give --model DIR, or --features FILE.h5"
        )
    return options


def overlap_notes(
    corpora: Sequence[Path],
    sentences: Sequence[str],
    training: Mapping[str, Any] | None,
) -> list[str]:
    """A note on each corpus: how many of these sentences it holds, or that it cannot be
    looked through.

    corpora    of the encoder's text; without any, those that `training` names
    sentences  of words joined by blanks
    training   record of the encoder's training, if there is one
    """
    found = list(corpora)
    notes = list[str]()
    for record in (
        trainings_of(training) if training is not None and not corpora else ()
    ):
        path = Path(str(record.get("corpus", "not named")))
        corpus = Corpus(path) if (path / "corpus.json").is_file() else None
        if corpus is None or corpus.train_tokens != record.get(
            "corpus_tokens"
        ):  # another may stand in its place
            notes.append(
                f"Not checked for sentences of development parts: the corpus of the encoder's training ({path}) is "
                "not there, or another by now (--corpus, once for each, names all of them)."
            )
        else:
            found.append(
                Path(str(corpus.record.settings.get("words")))
                if corpus.record.subwords
                else path
            )
    overlap = Overlap(sentence.split(" ") for sentence in sentences)
    for path in dict.fromkeys(found):
        count = overlapping_sentences(Corpus(path), overlap)
        what = f"{counted(count, 'sentence')} of the pretraining text ({path}) overlap with development or test parts"
        notes.append(
            f"{'WARNING: ' if count else ''}{what} (build_corpus --leave-out leaves such text out)."
        )
    return list(dict.fromkeys(notes))
