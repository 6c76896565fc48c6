"""How does one command train and score a task's probe on every kind of inputs and every seed?"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs import KINDS, FeatureStates, InputSources, ProbeInputs, WordTable
from downstream.options import TrainingSettings, add_settings, chosen_settings
from downstream.results import append_result, mean_and_deviation, open_results, summary
from downstream.task import Task
from downstream.training import TrainingReport, predict_all, train_probe
from elmoc.devices import checked_device
from elmoc.errors import InputError
from elmoc.files import refuse_existing
from elmoc.version import VERSION


@dataclass(frozen=True)
class Split:
    """The examples of one split, and how many come from each of its files."""

    name: str
    examples: list[Any]
    lengths: list[int]
    files: dict[str, int]


def print_sentences(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream sentences TASK FILES…`: the sentences in the order of the files, one a line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream sentences {task.name}",
        description="Print the sentences of the files, one a line, words joined by a space: the text of which "
        "`elmoc dump-features` makes features. One text may hold the sentences of all splits.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    task.add_reader_options(parser)
    options = parser.parse_args(arguments)
    for path in options.files:
        for example in task.read(path, options):
            for sentence in task.sentences(example):
                print(" ".join(sentence.words))


def run_task(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream TASK …`: train, score, print, and append a line of results for each kind of inputs."""
    options = _parse(task, arguments)
    settings = chosen_settings(options, published=task.published, small=task.small)
    kinds = _chosen_kinds(options)
    device = checked_device(options.device)
    splits = [
        _read_split(task, name, files, options)
        for name, files in (("train", options.train), ("dev", options.dev), ("test", options.test))
        if files
    ]
    if options.predictions:
        for kind in kinds:
            for seed in range(1, options.seeds + 1):
                refuse_existing(_prediction_path(task, options.predictions, kind, seed, splits[-1].name))
    if options.results:
        open_results(options.results)
    sources = _open_sources(task, splits, kinds, options)
    records = []
    for kind in kinds:
        record = _run_kind(task, kind, sources.select(kind), splits, settings, device, options)
        records.append(record)
        if options.results:
            append_result(options.results, record)
    print(summary(records))


def _parse(task: Task[Any, Any], arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream {task.name}",
        description=f"Train the {task.name} probe on frozen inputs and report its {task.metric}, mean and standard "
        "deviation over seeds.",
    )
    parser.add_argument("--train", nargs="+", type=Path, required=True, metavar="FILE", help="plain or .gz, like all")
    parser.add_argument("--dev", nargs="+", type=Path, required=True, metavar="FILE", help="chooses the best epoch")
    parser.add_argument("--test", nargs="+", type=Path, metavar="FILE", help="is reported; without it, dev is")
    parser.add_argument("--features", type=Path, metavar="FILE.h5", help="feature file (`elmoc dump-features`)")
    parser.add_argument("--vectors", metavar="V", help="word vectors: FILE.bin, FILE.vec, FILE.txt or random:SEED:SIZE")
    parser.add_argument(
        "--inputs",
        metavar="KIND,…",
        help=f"what the probe reads, one run each: {', '.join(KINDS)} (default: vectors,both where both are given)",
    )
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds 1 … N (default: 3)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument("--results", type=Path, metavar="FILE.jsonl", help="append a line for each kind of inputs")
    parser.add_argument("--predictions", type=Path, metavar="DIR", help="write predictions beside the gold labels")
    parser.add_argument(
        "--memory-limit",
        type=float,
        default=4.0,
        metavar="GB",
        help="keep so much of the features in memory and read the rest when it is needed (default: 4)",
    )
    task.add_reader_options(parser)
    add_settings(parser, published=task.published, small=task.small)
    return parser.parse_args(arguments)


def _chosen_kinds(options: argparse.Namespace) -> list[str]:
    if options.seeds < 1:
        raise InputError(f"--seeds {options.seeds} is not possible: at least one seed is needed")
    if options.inputs is not None:
        kinds = options.inputs.split(",")
    elif options.vectors and options.features:
        kinds = ["vectors", "both"]
    else:
        kinds = [kind for kind in ("vectors", "features") if getattr(options, kind)]
    if not kinds:
        raise InputError("the probe has nothing to read: give --features FILE.h5, --vectors V, or both")
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"--inputs: {kind!r} is not a kind of inputs; choose from {', '.join(KINDS)}")
        for needed, option in zip(KINDS[kind], ("vectors", "features"), strict=True):
            if needed and not getattr(options, option):
                raise InputError(f"--inputs {kind} needs --{option}")
    return list(dict.fromkeys(kinds))


def _read_split(task: Task[Any, Any], name: str, paths: Sequence[Path], options: argparse.Namespace) -> Split:
    examples: list[Any] = []
    files: dict[str, int] = {}
    for path in paths:
        read = task.read(path, options)
        files[str(path)] = sum(len(task.sentences(example)) for example in read)
        examples += read
    print(f"{name:6} {task.describe(examples)}", flush=True)
    lengths = [sum(len(sentence.words) for sentence in task.sentences(example)) for example in examples]
    return Split(name, examples, lengths, files)


def _open_sources(
    task: Task[Any, Any], splits: Sequence[Split], kinds: Sequence[str], options: argparse.Namespace
) -> InputSources:
    sentences = [sentence for split in splits for example in split.examples for sentence in task.sentences(example)]
    with_words, with_states = (any(KINDS[kind][which] for kind in kinds) for which in range(2))
    states = None
    if with_states:
        states = FeatureStates(options.features, sentences=sentences, memory_limit=options.memory_limit * 1e9)
        print(f"states {options.features}: {states.layers} layers of {states.width}", flush=True)
    words = None
    if with_words:
        words = WordTable(options.vectors, sentences=sentences)
        count, size = words.vectors.shape
        print(
            f"words  {options.vectors}: {size} dimensions; {words.missing:,} of {count:,} distinct words have none",
            flush=True,
        )
    return InputSources(words=words, states=states)


def _run_kind(
    task: Task[Any, Any],
    kind: str,
    sources: InputSources,
    splits: Sequence[Split],
    settings: TrainingSettings,
    device: torch.device,
    options: argparse.Namespace,
) -> dict[str, Any]:
    reported = splits[-1]
    seeds = list(range(1, options.seeds + 1))
    scores: list[float] = []
    reports: list[TrainingReport] = []
    for seed in seeds:
        score, report, predictions = _run_seed(task, kind, sources, splits, settings, device, seed)
        scores.append(score)
        reports.append(report)
        print(
            f"{task.name} {kind} seed {seed}: {reported.name} {score:.2f} (dev {report.dev_score:.2f} in epoch "
            f"{report.best_epoch} of {report.epochs}; {report.seconds:.0f} s, "
            f"{report.sentences_per_second:,.0f} training sentences/s)",
            flush=True,
        )
        if options.predictions:
            path = _prediction_path(task, options.predictions, kind, seed, reported.name)
            task.write_predictions(path, reported.examples, predictions)
    mean, deviation = mean_and_deviation(scores)
    return {
        "task": task.name,
        "inputs": kind,
        "metric": task.metric,
        "split": reported.name,
        "seeds": seeds,
        "scores": scores,
        "mean": mean,
        "deviation": deviation,
        "dev_scores": [report.dev_score for report in reports],
        "best_epochs": [report.best_epoch for report in reports],
        "epochs": [report.epochs for report in reports],
        "seconds": [report.seconds for report in reports],
        "sentences_per_second": [report.sentences_per_second for report in reports],
        "settings": asdict(settings),
        "device": str(device),
        "data": {split.name: split.files for split in splits},
        "features": None if sources.states is None else sources.states.describe(),
        "vectors": None if sources.words is None else sources.words.describe(),
        "elmoc": VERSION,
    }


def _run_seed(
    task: Task[Any, Any],
    kind: str,
    sources: InputSources,
    splits: Sequence[Split],
    settings: TrainingSettings,
    device: torch.device,
    seed: int,
) -> tuple[float, TrainingReport, list[Any]]:
    train, dev, reported = splits[0], splits[1], splits[-1]
    torch.manual_seed(seed)
    probe = task.build(train=train.examples, inputs=ProbeInputs(sources), settings=settings).to(device)

    def predict(split: Split) -> list[Any]:
        return predict_all(probe, split.examples, lengths=split.lengths, batch_size=settings.batch_size)

    report = train_probe(
        probe,
        train=train.examples,
        lengths=train.lengths,
        evaluate=lambda: task.score(dev.examples, predict(dev)),
        settings=settings,
        generator=np.random.default_rng(seed),
        title=f"{task.name} {kind} seed {seed}",
    )
    predictions = predict(reported)
    return task.score(reported.examples, predictions), report, predictions


def _prediction_path(task: Task[Any, Any], folder: Path, kind: str, seed: int, split: str) -> Path:
    return folder / f"{task.name}.{kind}.seed{seed}.{split}.conll"
