"""How does one command train and score a task's probe on every kind of inputs and every seed?"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.command import parse, require_sources
from downstream.inputs import KINDS, FeatureStates, InputSources, LayerStates, ProbeInputs, WordTable
from downstream.model_states import ModelStates
from downstream.options import TrainingSettings, chosen_settings
from downstream.probe_directory import SavedProbe, read_probe, save_probe
from downstream.results import append_result, mean_and_deviation, open_results, summary
from downstream.sentence import Sentence
from downstream.task import Probe, Task
from downstream.training import predict_all, train_probe
from elmoc.devices import checked_device
from elmoc.errors import InputError
from elmoc.files import refuse_existing
from elmoc.version import VERSION

TRAINING_FIELDS = ("preset", "dev_scores", "best_epochs", "epochs", "curves", "seconds", "examples_per_second")
"""What a line of results says about the training of its probes: it stays true when they are scored on other data."""


@dataclass(frozen=True)
class Split:
    """The examples of one split, and how many sentences come from each of its files."""

    name: str
    examples: list[Any]
    lengths: list[int]
    files: dict[str, int]


@dataclass(frozen=True)
class Run:
    """What all probes of one command share."""

    task: Task[Any, Any]
    options: argparse.Namespace
    device: torch.device
    splits: list[Split]
    sources: InputSources

    @property
    def reported(self) -> Split:
        """The split whose scores are reported: test, or dev without it."""
        return self.splits[-1]


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
    records = _evaluate(task, options) if options.evaluate_only else _train(task, options)
    print(summary(records))


def _train(task: Task[Any, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    settings = chosen_settings(options, published=task.published, small=task.small)
    device = checked_device(options.device)
    given = (("train", options.train), ("dev", options.dev), ("test", options.test))
    splits = [_read_split(task, name, files, options) for name, files in given if files]
    for kind in options.kinds:
        for seed in options.seed_list:
            _refuse_predictions(task, options, kind, seed, splits[-1].name)
    run = Run(task, options, device, splits, _open_sources(task, splits, options.kinds, options))
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
    facts = _facts(run, kind, sources, settings)
    saved = options.save / f"{kind}.seed{seed}" if options.save else None
    if saved is not None and (saved / "probe.json").exists():
        record = _record_of(read_probe(saved), facts)
        print(f"{task.name} {kind} seed {seed}: {record['scores'][0]:.2f}, trained before: {saved}", flush=True)
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
        evaluate=lambda: float(_figures(task, dev, _predict(probe, dev, settings))[task.metric]),
        settings=settings,
        generator=np.random.default_rng(seed),
        title=f"{task.name} {kind} seed {seed}",
        unit=task.unit,
    )
    scored = _scored(run, probe, kind, seed, settings)
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
    return record


def _evaluate(task: Task[Any, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Score saved probes on other data: one line of results for each kind of inputs."""
    device = checked_device(options.device)
    all_saved = [read_probe(path) for path in options.evaluate_only]
    for saved in all_saved:
        if saved.task != task.name:
            raise InputError(f"{saved.path} is a probe of the task {saved.task}, not {task.name}")
        require_sources(f"{saved.path} reads {saved.kind}: it", saved.kind, options)
    splits = [_read_split(task, "test", options.test, options)]
    for saved in all_saved:
        _refuse_predictions(task, options, saved.kind, saved.seed, "test")
    kinds = list(dict.fromkeys(saved.kind for saved in all_saved))
    run = Run(task, options, device, splits, _open_sources(task, splits, kinds, options))
    records: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for saved in all_saved:
        sources = run.sources.select(saved.kind)
        settings = type(task.published)(**saved.settings)
        probe = saved.rebuild(task, sources).to(device)
        scored = _scored(run, probe, saved.kind, saved.seed, settings)
        print(f"{saved.path}: test {scored['scores'][0]:.2f}", flush=True)
        trained = {name: saved.record[name] for name in TRAINING_FIELDS}
        facts = _facts(run, saved.kind, sources, settings) | {"data": saved.record["data"] | {"test": splits[0].files}}
        records[saved.kind].append(facts | trained | scored)
    joined = [_joined(seeds) for seeds in records.values()]
    for record in joined if options.results else ():
        append_result(options.results, record)
    return joined


def _scored(run: Run, probe: Probe[Any, Any], kind: str, seed: int, settings: TrainingSettings) -> dict[str, Any]:
    """Predict the reported split; print details, write predictions, and give scores, figures and counts."""
    task, split = run.task, run.reported
    predictions = _predict(probe, split, settings)
    figures = _figures(task, split, predictions)
    if run.options.predictions:
        path = _prediction_path(task, run.options, kind, seed, split.name)
        task.write_predictions(path, split.examples, predictions)
    details = task.details(split.examples, predictions)
    if details:
        print(details, flush=True)
    counts = _item_counts(task, split, predictions)
    return {
        "seeds": [seed],
        "scores": [float(figures[task.metric])],
        "figures": {name: [float(value)] for name, value in figures.items()},
        "items": len(counts),
        "counts": [counts],
    }


def _facts(run: Run, kind: str, sources: InputSources, settings: TrainingSettings) -> dict[str, Any]:
    """What a line of results says about a run whatever comes out."""
    options, reported = run.options, run.reported
    return {
        "task": run.task.name,
        "dataset": options.name or Path(next(iter(reported.files))).absolute().parent.name,
        "inputs": kind,
        "metric": run.task.metric,
        "unit": run.task.unit,
        "split": reported.name,
        "data": {split.name: split.files for split in run.splits},
        "settings": asdict(settings),
        "preset": "small" if options.small else "published",
        "device": str(run.device),
        "threads": torch.get_num_threads(),
        "features": None if sources.states is None else sources.states.describe(),
        "vectors": None if sources.words is None else sources.words.describe(),
        "elmoc": VERSION,
    }


def _record_of(saved: SavedProbe, facts: dict[str, Any]) -> dict[str, Any]:
    """The results of a probe that was trained before, with the same settings, data and inputs."""
    for name in ("task", "inputs", "split", "data", "settings"):
        if saved.record[name] != facts[name]:
            raise InputError(
                f"{saved.path} was trained with other {name} ({saved.record[name]}) than this run has: choose another "
                "directory for --save, or remove it"
            )
    saved.check_sources(features=facts["features"], vectors=facts["vectors"])
    return saved.record


def _joined(seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One line of results of the lines of several seeds: what stands in lists, one a seed, is strung together."""
    joined = dict(seeds[0])
    for name, value in joined.items():
        if isinstance(value, list):
            joined[name] = [one for record in seeds for one in record[name]]
    joined["figures"] = {name: [record["figures"][name][0] for record in seeds] for name in joined["figures"]}
    joined["mean"], joined["deviation"] = mean_and_deviation(joined["scores"])
    return joined


def _read_split(task: Task[Any, Any], name: str, paths: Sequence[Path], options: argparse.Namespace) -> Split:
    examples: list[Any] = []
    files: dict[str, int] = {}
    for path in paths:
        read = task.read(path, options, training=name == "train")
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
    states = _open_states(sentences, options) if with_states else None
    words = None
    if with_words:
        words = WordTable(options.vectors, sentences=sentences)
        count, size = words.vectors.shape
        print(
            f"words  {options.vectors}: {size} dimensions; {words.missing:,} of {count:,} distinct words have none",
            flush=True,
        )
    return InputSources(words=words, states=states)


def _open_states(sentences: Sequence[Sentence], options: argparse.Namespace) -> LayerStates:
    states: LayerStates
    if options.model:
        states = ModelStates(
            options.model,
            sentences=sentences,
            memory_limit=options.memory_limit * 1e9,
            vectors=options.model_vectors,
            device=options.device,
        )
    else:
        states = FeatureStates(options.features, sentences=sentences)
    print(f"states {options.model or options.features}: {states.layers} layers of {states.width}", flush=True)
    return states


def _predict(probe: Probe[Any, Any], split: Split, settings: TrainingSettings) -> list[Any]:
    return predict_all(probe, split.examples, lengths=split.lengths, batch_size=settings.batch_size)


def _figures(task: Task[Any, Any], split: Split, predictions: Sequence[Any]) -> dict[str, np.ndarray]:
    return task.figures(np.sum([task.count(*pair) for pair in zip(split.examples, predictions, strict=True)], axis=0))


def _item_counts(task: Task[Any, Any], split: Split, predictions: Sequence[Any]) -> list[list[float]]:
    """The counts of each item of the bootstrap: of the examples that begin on one line of a file."""
    items: dict[tuple[str, int], np.ndarray] = {}
    for example, prediction in zip(split.examples, predictions, strict=True):
        first = task.sentences(example)[0]
        counts = task.count(example, prediction)
        place = (first.file, first.line)
        items[place] = items[place] + counts if place in items else counts
    return [[int(one) if one == int(one) else round(one, 6) for one in counts.tolist()] for counts in items.values()]


def _prediction_path(task: Task[Any, Any], options: argparse.Namespace, kind: str, seed: int, split: str) -> Path:
    path: Path = options.predictions / f"{task.name}.{kind}.seed{seed}.{split}{task.suffix}"
    return path


def _refuse_predictions(task: Task[Any, Any], options: argparse.Namespace, kind: str, seed: int, split: str) -> None:
    """Predictions of a probe that is saved already are not written again, so they may be there."""
    saved = options.save and (options.save / f"{kind}.seed{seed}" / "probe.json").exists()
    if options.predictions and not saved:
        refuse_existing(_prediction_path(task, options, kind, seed, split))
