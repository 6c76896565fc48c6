"""`python -m downstream suite`: what is an encoder worth, from the suite file to the figure of merit?"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from downstream.inputs.settings import INPUT_KINDS, SEPARATOR
from downstream.inputs.sources import FeatureStates
from downstream.probe.task import Split, read_split
from downstream.results.merit import figure_of_merit
from downstream.results.records import encoder_identity
from downstream.results.rows import Tasks, compared_rows
from downstream.results.table import explanations, row_as_json, runs_table, tables_as_text
from downstream.suite.jobs import Job, make_jobs, run_jobs
from downstream.suite.overlap import overlap_notes
from downstream.suite.plan import INPUTS, SuiteProbe, read_suite
from elmoc.devices import checked_device
from elmoc.errors import InputError, reading
from elmoc.files.checksums import fingerprint
from elmoc.files.records import write_json
from elmoc.files.text import open_text
from elmoc.files.writing import atomic_path, locked, refuse_existing
from elmoc.model import ElmoC
from elmoc.process import available_cores
from elmoc.settings import counted
from elmoc.word_vectors.opening import open_word_vectors


def run_suite(arguments: Sequence[str], tasks: Tasks) -> None:
    """`python -m downstream suite SUITE.toml …`; `tasks` are those there are."""
    options = _parse(arguments)
    vectors, probes = read_suite(options.suite, tasks, data=options.data, quick=options.quick)
    options.vectors = options.vectors or vectors
    data = []
    for probe in probes:
        fraction = probe.settings["both"].train_fraction
        data.append([read_split(probe.task, *named, probe.reader, fraction=fraction) for named in probe.files.items()])
    if options.sentences:
        refuse_existing(options.sentences)
        count = _write_sentences(options.sentences, [split for splits in data for split in splits])
        print(f"{options.sentences}: {counted(count, 'sentence')}")
        return
    if not options.vectors and options.inputs != ["features"]:
        raise InputError(f"{options.suite} names no word vectors: give --vectors FILE")
    encoder = Path(os.path.abspath(options.model or options.features or "vectors"))
    name = encoder.parent.name if encoder.name == "model" else encoder.name.removesuffix(".h5")
    out = options.out or Path(options.suite.stem, f"{name}-quick" if options.quick else name)
    with locked(out / "suite.json"):
        failed = _run(options, list(zip(probes, data, strict=True)), tasks, out)
    if failed:
        raise InputError(f"{failed} of the suite's runs failed (above): the same command runs them again")


def _run(options: argparse.Namespace, probes: Sequence[tuple[SuiteProbe, list[Split]]], tasks: Tasks, out: Path) -> int:
    """Run the suite, of probes and their data, and write its report; returns how many of its runs failed."""
    baseline = out.parent / "baseline"
    for folder in (out / "results", baseline):
        folder.mkdir(parents=True, exist_ok=True)
    vectors = SEPARATOR.join(open_word_vectors(each, only=[]).fingerprint for each in options.vectors)
    model = ElmoC.from_pretrained(options.model, device=options.device, precision="auto") if options.model else None
    reported = _sentences(split for _, splits in probes for split in splits[1:])
    notes = overlap_notes(options.corpus or [], reported, model.directory.training if model else None)
    features = options.features
    if model:
        features = _dump(model, options, [split for _, splits in probes for split in splits], out / "features")
        model = None  # its memory is that of the probes
    encoder = FeatureStates(features, sentences=[]).describe() if features else {}
    jobs: list[Job] = []
    for probe, splits in probes:
        for kind in (INPUT_KINDS[name] for name in INPUTS):
            if (features or not kind.states) and (options.vectors or not kind.words):
                sources = ["--device", options.device, *(["--vectors", *options.vectors] if kind.words else [])]
                sources += ["--features", str(features)] if kind.states else []
                identity = [vectors if kind.words else "", encoder_identity(encoder) if kind.states else ""]
                folder = out / "results" if kind.states else baseline
                jobs += make_jobs(probe, kind.name, splits, sources, identity, folder)
    asked = [job for job in jobs if job.inputs in options.inputs]
    done = sum(job.result.exists() for job in asked)
    print(f"{counted(len(asked), 'run')}, {done} done before, {options.jobs} at once: {out}", flush=True)
    failed = run_jobs(asked, at_once=options.jobs, logs=out / "logs")
    if finished := [job for job in jobs if job.result.exists()]:
        _report(options, finished, out, tasks, encoder, notes)
    return failed


def _sentences(splits: Iterable[Split]) -> list[str]:
    """The sentences of splits, each once, words joined by a blank."""
    return list(dict.fromkeys(" ".join(sentence.words) for split in splits for sentence in split.sentences))


def _write_sentences(path: Path, splits: Iterable[Split]) -> int:
    """Write the sentences of splits, each once, one a line; returns their number."""
    sentences = _sentences(splits)
    with locked(path), open_text(path) as file:
        file.writelines(f"{sentence}\n" for sentence in sentences)
    return len(sentences)


def _dump(model: ElmoC, options: argparse.Namespace, splits: Sequence[Split], folder: Path) -> Path:
    """The feature file of all sentences of the suite, which is made where it is not there."""
    identity = fingerprint(*(each.encode() for each in (*model.describe().values(), *_sentences(splits))))
    features, text = folder / f"{identity}.h5", folder / f"{identity}.txt"
    if not features.exists():
        _write_sentences(text, splits)
        command = [sys.executable, "-m", "elmoc", "dump-features", options.model, text, features, "--dtype", "float16"]
        command += ["--resume", "--device", options.device]
        if subprocess.run(list(map(str, command)), env=os.environ | {"OMP_NUM_THREADS": str(options.jobs)}).returncode:
            raise InputError(f"the features of {options.model} were not made (see above)")
    return features


def _report(
    options: argparse.Namespace,
    jobs: Sequence[Job],
    out: Path,
    tasks: Tasks,
    encoder: Mapping[str, Any],
    notes: Sequence[str],
) -> None:
    """Print the table of jobs that are done and the figure of merit; write `results.jsonl` and `suite.json`."""
    lines = []
    for job in jobs:
        with reading(job.result):
            line = json.loads(job.result.read_text(encoding="utf-8")) | {"compared_as": job.probe.identity}
        if line["features"] and options.model:
            line["features"]["directory"] = os.path.abspath(options.model)
        lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    results = out / "results.jsonl"
    with atomic_path(results) as partial:
        partial.write_text("".join(lines), encoding="utf-8")
    rows = compared_rows([results], tasks)
    merit = figure_of_merit(rows)
    notes = [*explanations(rows), *notes]
    print("\n" + tables_as_text(rows, [runs_table(rows)], notes))
    print(f"figure of merit: {merit or 'there is none without results of both and of vectors'}")
    content = {
        "encoder": encoder or None,
        "merit": merit and {**vars(merit), "shares": [asdict(share) for share in merit.shares]},
        "notes": notes,
        "rows": [row_as_json(row) for row in rows],
    }
    write_json(out / "suite.json", content)


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
    parser.add_argument("--vectors", nargs="+", metavar="V", help="word vectors, in place of the suite file's")
    parser.add_argument("--data", type=Path, metavar="DIR", help="what paths of data in the suite file are relative to")
    parser.add_argument("--quick", action="store_true", help="run the quick suite: its [probe.quick] tables")
    parser.add_argument(
        "--inputs", default="vectors,both", metavar="KIND,…", help="of vectors, features, both (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="results and logs (default: SUITE/ENCODER[-quick])")
    text = "corpus in which sentences of dev and test parts are looked for (default: those of the model's training)"
    parser.add_argument("--corpus", type=Path, action="append", metavar="DIR", help=text)
    cores = available_cores()
    parser.add_argument("--jobs", type=int, default=cores, metavar="N", help=f"probes at once (default: {cores})")
    parser.add_argument("--device", default="cpu", help="where probes are trained and features made (default: cpu)")
    text = "write the suite's sentences there, one a line, and run nothing"
    parser.add_argument("--sentences", type=Path, metavar="FILE", help=text)
    options = parser.parse_args(arguments)
    options.inputs = options.inputs.split(",")
    if unknown := set(options.inputs) - set(INPUTS):
        parser.error(f"--inputs: {unknown.pop()!r} is not a kind of inputs; choose from {', '.join(INPUTS)}")
    if options.jobs < 1:
        parser.error("--jobs: at least one process is needed")
    checked_device(options.device)
    if options.inputs == ["vectors"]:
        options.model = options.features = None
    elif not (options.model or options.features or options.sentences):
        parser.error("the suite has no encoder: give --model DIR, or --features FILE.h5")
    return options
