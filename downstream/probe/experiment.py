"""How does one command train and score a task's probe on every kind of inputs and every seed?"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.probe.cli import parse, require_sources
from downstream.probe.run import (
    Run,
    facts_of,
    figures_of,
    open_sources,
    predict,
    prediction_path,
    read_split,
    refuse_predictions,
    score,
    write_predictions,
)
from downstream.probe.saved_probe import SavedProbe, read_probe, save_probe
from downstream.probe.settings import TrainingSettings, chosen_settings
from downstream.probe.task import Task
from downstream.probe.training import train_probe
from downstream.results.records import append_result, mean_and_deviation, open_results, summary
from elmoc.devices import checked_device
from elmoc.errors import InputError

TRAINING_FIELDS = ("preset", "dev_scores", "best_epochs", "epochs", "curves", "seconds", "examples_per_second")
"""What a line of results says about the training of its probes: it stays true when they are scored on other data."""


def print_sentences(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream sentences TASK FILES…`: each distinct sentence once, in the order of the files."""
    parser = argparse.ArgumentParser(
        prog=f"python -m downstream sentences {task.name}",
        description="Print the sentences of the files as the probe reads them, each distinct one once, one a line, "
        "words joined by a space: the text of which `elmoc dump-features` makes features, for all splits at once.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    task.add_reader_options(parser)
    options = parser.parse_args(arguments)
    printed: set[tuple[str, ...]] = set()
    for path in options.files:
        for example in task.read(path, options, training=True):
            for sentence in task.sentences(example):
                if sentence.words not in printed:
                    printed.add(sentence.words)
                    print(" ".join(sentence.words))


def run_task(task: Task[Any, Any], arguments: Sequence[str]) -> None:
    """`python -m downstream TASK …`: train, score, print, and append a line of results for each kind of inputs."""
    options = parse(task, arguments)
    if options.results:
        open_results(options.results)
    for folder in (options.save, options.predictions):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)  # that it cannot be made is found out before training
    records = _evaluate(task, options) if options.evaluate_only else _train(task, options)
    print(summary(records))


def _train(task: Task[Any, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    settings = chosen_settings(options, published=task.published, small=task.small)
    device = checked_device(options.device)
    given = (("train", options.train), ("dev", options.dev), ("test", options.test))
    splits = [read_split(task, name, files, options) for name, files in given if files]
    for kind in options.kinds:
        for seed in options.seed_list:
            refuse_predictions(task, options, kind, seed, splits[-1].name)
    run = Run(task, options, device, splits, open_sources(task, splits, options.kinds, options))
    vocabulary = task.vocabulary(splits[0].examples)
    records = []
    for kind in options.kinds:
        seeds = [_seed_record(run, kind, seed, settings, vocabulary) for seed in options.seed_list]
        records.append(_joined(seeds))
        if options.results:
            append_result(options.results, records[-1])
    return records


def _seed_record(
    run: Run, kind: str, seed: int, settings: TrainingSettings, vocabulary: dict[str, Any]
) -> dict[str, Any]:
    """The line of results of one seed: of a probe that is saved already, or of one that is trained now."""
    task, options = run.task, run.options
    sources = run.sources.select(kind)
    facts = facts_of(run, kind, sources, settings)
    saved = options.save / f"{kind}.seed{seed}" if options.save else None
    if saved is not None and (saved / "probe.json").exists():
        known = read_probe(saved)
        record = _record_of(known, facts)
        print(f"{task.name} {kind} seed {seed}: {record['scores'][0]:.2f}, trained before: {saved}", flush=True)
        if options.predictions and not prediction_path(task, options, kind, seed, run.reported.name).exists():
            probe = known.rebuild(task, sources).to(run.device)
            write_predictions(run, kind, seed, predict(probe, run.reported, settings))
        return record
    train, dev = run.splits[:2]
    torch.manual_seed(seed)
    inputs = ProbeInputs(sources)
    if settings.standardise:
        inputs.standardise_words([sentence for example in train.examples for sentence in task.sentences(example)])
    probe = task.build(vocabulary=vocabulary, inputs=inputs, settings=settings).to(run.device)
    report = train_probe(
        probe,
        train=train.examples,
        lengths=train.lengths,
        evaluate=lambda: float(figures_of(task, dev, predict(probe, dev, settings))[task.metric]),
        settings=settings,
        generator=np.random.default_rng(seed),
        title=f"{task.name} {kind} seed {seed}",
        unit=task.unit,
    )
    predictions = predict(probe, run.reported, settings)
    scored = score(run, seed, predictions)
    print(
        f"{task.name} {kind} seed {seed}: {run.reported.name} {scored['scores'][0]:.2f} (dev {report.dev_score:.2f} in "
        f"epoch {report.best_epoch} of {len(report.epochs)}; {report.seconds:.0f} s, "
        f"{report.examples_per_second:,.0f} {task.unit} a second in training)",
        flush=True,
    )
    record = facts | scored
    record |= {
        "dev_scores": [report.dev_score],
        "best_epochs": [report.best_epoch],
        "epochs": [len(report.epochs)],
        "curves": [[asdict(epoch) for epoch in report.epochs]],
        "seconds": [report.seconds],
        "examples_per_second": [report.examples_per_second],
    }
    if saved is not None:
        save_probe(
            saved,
            probe,
            task=task.name,
            kind=kind,
            seed=seed,
            settings=asdict(settings),
            vocabulary=vocabulary,
            record=record,
        )
    write_predictions(run, kind, seed, predictions)
    return record


def _evaluate(task: Task[Any, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Score saved probes on other data: a line of results for the seeds that differ in nothing else."""
    device = checked_device(options.device)
    all_saved = [read_probe(path) for path in options.evaluate_only]
    first: dict[tuple[str, int], SavedProbe] = {}
    for saved in all_saved:
        if saved.task != task.name:
            raise InputError(f"{saved.path} is a probe of the task {saved.task}, not {task.name}")
        known = first.setdefault((saved.kind, saved.seed), saved)
        if known is not saved:
            raise InputError(
                f"{known.path} and {saved.path} are both of {saved.kind}, seed {saved.seed}: score them by two commands"
            )
        require_sources(f"{saved.path} reads {saved.kind}: it", saved.kind, options)
    splits = [read_split(task, "test", options.test, options)]
    for saved in all_saved:
        refuse_predictions(task, options, saved.kind, saved.seed, "test")
    kinds = list(dict.fromkeys(saved.kind for saved in all_saved))
    run = Run(task, options, device, splits, open_sources(task, splits, kinds, options))
    records: dict[str, list[dict[str, Any]]] = {}
    for saved in all_saved:
        sources = run.sources.select(saved.kind)
        settings = saved.settings_of(task)
        probe = saved.rebuild(task, sources).to(device)
        predictions = predict(probe, run.reported, settings)
        scored = score(run, saved.seed, predictions)
        write_predictions(run, saved.kind, saved.seed, predictions)
        print(f"{saved.path}: test {scored['scores'][0]:.2f}", flush=True)
        trained = {name: saved.record[name] for name in TRAINING_FIELDS}
        facts = facts_of(run, saved.kind, sources, settings)
        for name in ("data", "fingerprints"):
            facts[name] = saved.record[name] | facts[name]
        same = json.dumps([saved.kind, saved.settings, saved.record["reader"], facts["fingerprints"]], sort_keys=True)
        records.setdefault(same, []).append(facts | trained | scored)
    joined = [_joined(seeds) for seeds in records.values()]
    for record in joined if options.results else ():
        append_result(options.results, record)
    return joined


def _record_of(saved: SavedProbe, facts: dict[str, Any]) -> dict[str, Any]:
    """The results of a probe that was trained before, with the same settings, data and inputs."""
    for name in ("task", "inputs", "split", "settings", "reader", "fingerprints"):
        if saved.record[name] != facts[name]:
            what = "data" if name == "fingerprints" else name
            raise InputError(
                f"{saved.path} was trained with other {what} ({saved.record[what]}) than this run has: choose another "
                "directory for --save, or remove it"
            )
    saved.check_sources(features=facts["features"], vectors=facts["vectors"])
    return saved.record | {"dataset": facts["dataset"]}


def _joined(seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One line of results of the lines of several seeds: what stands in lists, one a seed, is strung together."""
    joined = dict(seeds[0])
    for name, value in joined.items():
        if isinstance(value, list):
            joined[name] = [one for record in seeds for one in record[name]]
    joined["figures"] = {name: [record["figures"][name][0] for record in seeds] for name in joined["figures"]}
    joined["mean"], joined["deviation"] = mean_and_deviation(joined["scores"])
    return joined
