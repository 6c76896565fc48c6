"""Experiments: the probes of one command, trained or scored seed by seed, and the lines of results they give."""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs.kinds import INPUT_KINDS, InputKind, refuse_unread
from downstream.inputs.probe_inputs import ProbeInputs, open_sources
from downstream.probe.saved_probe import SavedProbe, is_saved, read_probe
from downstream.probe.settings import ReaderOptions, TrainingSettings, given_values, settings_of_inputs
from downstream.probe.splits import read_split
from downstream.probe.task import Probe, Split, Task
from downstream.probe.training import evaluate, train_probe
from downstream.results.records import append_result, mean_and_deviation, open_results, summary
from elmoc.devices import checked_device, free_memory
from elmoc.errors import InputError
from elmoc.files.locks import locked
from elmoc.files.writing import human_bytes, refuse_existing
from elmoc.settings import differences
from elmoc.version import VERSION

TRAINING_FIELDS = ("preset", "dev_scores", "best_epochs", "epochs", "curves", "seconds", "examples_per_second")
"""What a line of results says about the training of its probes: it stays true when they are scored on other data."""

COPIES = 5
"""What training keeps of each weight: itself, the best so far, its gradient and two numbers of the optimiser."""


def run_experiment(task: Task[Any, Any], options: argparse.Namespace) -> None:
    """Train or score the probes of a command, print scores, and append a line of results for each kind of inputs.

    options  those of `downstream.probe.cli.parse`
    """
    if options.results:
        open_results(options.results)
    for folder in (options.save, options.predictions):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)  # an impossible path is found before training
    records = []
    for record in _score_saved(task, options) if options.evaluate_only else _train(task, options):
        records.append(record)
        if options.results:
            append_result(options.results, record)
    print(summary(records))


def _train(task: Task[Any, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train every kind of inputs with every seed; yields the line of results of each kind."""
    experiment = Experiment(task, options, [(kind, seed) for kind in options.kinds for seed in options.seed_list])
    vocabulary = _vocabulary(task, experiment.splits["train"], fraction=options.settings.train_fraction)
    for kind in options.kinds:
        yield _joined([experiment.train(kind, seed, vocabulary) for seed in options.seed_list])


def _vocabulary(task: Task[Any, Any], train: Split, *, fraction: float) -> dict[str, Any]:
    try:
        return task.vocabulary(train.examples)
    except InputError as error:
        if fraction == 1.0:
            raise
        raise InputError(f"{error}; or give more of it than --train-fraction {fraction:g}") from None


def _score_saved(task: Task[Any, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Score saved probes on other data; yields a line of results for the seeds that differ in nothing else."""
    first: dict[tuple[str, int], SavedProbe] = {}
    for saved in map(read_probe, options.evaluate_only):
        if saved.task != task.name:
            raise InputError(f"{saved.path} is a probe of the task {saved.task}, not {task.name}")
        known = first.setdefault((saved.kind, saved.seed), saved)
        if known is not saved:
            raise InputError(
                f"{known.path} and {saved.path} are both of {saved.kind}, seed {saved.seed}: score them by two commands"
            )
        INPUT_KINDS[saved.kind].require_sources(f"{saved.path} reads {saved.kind}: it", options)
    probes = [(INPUT_KINDS[kind], seed) for kind, seed in first]
    refuse_unread(options, [kind for kind, _ in probes], "the probes given")
    options.reader = _reader_of_saved(task, options, list(first.values()))
    experiment = Experiment(task, options, probes)
    records: dict[str, list[dict[str, Any]]] = {}
    for saved in first.values():
        record = experiment.score_saved(saved)
        same = json.dumps([saved.kind, saved.settings, saved.record["reader"], record["fingerprints"]], sort_keys=True)
        records.setdefault(same, []).append(record)
    yield from map(_joined, records.values())


def _reader_of_saved(task: Task[Any, Any], options: argparse.Namespace, probes: Sequence[SavedProbe]) -> ReaderOptions:
    """How the test data is read: as the probes' own data was, but for what the command line gives."""
    given = given_values(options, task.reader)
    readers = [saved.reader_of(task, given) for saved in probes]
    for saved, reader in zip(probes, readers, strict=True):
        if differing := differences(asdict(readers[0]), asdict(reader)):
            raise InputError(
                f"{probes[0].path} and {saved.path} were trained on data that was read in other ways: "
                f"{', '.join(differing)}: give that option, or score them by two commands"
            )
    return readers[0]


class Experiment:
    """What the probes of one command share: their task, options, splits and sources of inputs.

    probes  the kind of inputs and the seed of each

    The scores of the last split are reported: test, or dev without it.
    """

    def __init__(
        self, task: Task[Any, Any], options: argparse.Namespace, probes: Sequence[tuple[InputKind, int]]
    ) -> None:
        self.task = task
        self.options = options
        self.device = checked_device(options.device)
        given = {"train": options.train, "dev": options.dev, "test": options.test}
        self.splits = {
            name: read_split(task, name, files, options.reader, fraction=self._fraction(name))
            for name, files in given.items()
            if files
        }
        self.reported = list(self.splits.values())[-1]
        for kind, seed in probes:  # before anything is computed
            with self._locked(kind, seed):
                pass
        self.sources = open_sources(
            {kind for kind, _ in probes},
            sentences=[sentence for split in self.splits.values() for sentence in split.sentences],
            options=options,
        )

    def _fraction(self, split: str) -> float:
        """The part of a split that is used: all of it, but in training."""
        return self.options.settings.train_fraction if split == "train" else 1.0

    def train(self, kind: InputKind, seed: int, vocabulary: dict[str, Any]) -> dict[str, Any]:
        """The line of results of one seed: of a probe that is saved already, or of one that is trained now."""
        with self._locked(kind, seed):
            return self._train(kind, seed, vocabulary)

    def _train(self, kind: InputKind, seed: int, vocabulary: dict[str, Any]) -> dict[str, Any]:
        task, settings, train = self.task, settings_of_inputs(self.options.settings, kind), self.splits["train"]
        title = f"{task.name} {kind.name} seed {seed}"
        facts = self._facts(kind, settings)
        if self._is_saved(kind, seed):
            return self._trained_before(read_probe(self._probe_path(kind, seed)), title, facts)
        self._require_memory(kind, vocabulary)
        torch.manual_seed(seed)
        inputs = ProbeInputs(self.sources.select(kind), settings)
        if settings.standardise:
            inputs.standardise_words(train.sentences)
        if settings.match_vectors:
            inputs.match_words(train.sentences)
        probe = task.build(vocabulary=vocabulary, inputs=inputs, settings=settings).to(self.device)
        generator = np.random.default_rng(seed)
        report = train_probe(
            task, probe, train=train, dev=self.splits["dev"], settings=settings, generator=generator, title=title
        )
        scored, predictions = self._score(probe, seed, settings)
        print(
            f"{title}: {self.reported.name} {scored['scores'][0]:.2f} (dev {report.dev_score:.2f} in "
            f"epoch {report.best_epoch} of {len(report.epochs)}; {report.seconds:.0f} s, "
            f"{report.examples_per_second:,.0f} {task.unit} a second in training)",
            flush=True,
        )
        record = facts | scored | report.as_record()
        if self.options.save:
            SavedProbe(
                path=self._probe_path(kind, seed),
                task=task.name,
                kind=kind.name,
                seed=seed,
                settings=asdict(settings),
                vocabulary=vocabulary,
                record=record,
            ).save(probe)
        self._write_predictions(kind, seed, predictions)
        return record

    def score_saved(self, saved: SavedProbe) -> dict[str, Any]:
        """The line of results of a saved probe on the reported split."""
        kind, settings = INPUT_KINDS[saved.kind], saved.settings_of(self.task)
        with self._locked(kind, saved.seed):
            scored, predictions = self._score(self._rebuild(saved), saved.seed, settings)
            self._write_predictions(kind, saved.seed, predictions)
        print(f"{saved.path}: {self.reported.name} {scored['scores'][0]:.2f}", flush=True)
        facts = self._facts(kind, settings)
        for name in ("data", "fingerprints"):
            facts[name] = saved.record[name] | facts[name]
        return facts | {name: saved.record[name] for name in TRAINING_FIELDS} | scored

    def _trained_before(self, saved: SavedProbe, title: str, facts: dict[str, Any]) -> dict[str, Any]:
        """The line of results of a saved probe of this experiment; predictions that are missing are written."""
        record = saved.record_of(facts)
        print(f"{title}: {record['scores'][0]:.2f}, trained before: {saved.path}", flush=True)
        kind, settings = INPUT_KINDS[saved.kind], self.options.settings
        if self.options.predictions and not self._prediction_path(kind, saved.seed).exists():
            evaluation = evaluate(self.task, self._rebuild(saved), self.reported, settings.batch_size)
            self._write_predictions(kind, saved.seed, evaluation.predictions)
        return record

    def _require_memory(self, kind: InputKind, vocabulary: dict[str, Any]) -> None:
        """Raise an `InputError` unless the weights of a probe, and what its training keeps of them, have room."""
        inputs, settings = self.sources.select(kind), settings_of_inputs(self.options.settings, kind)
        with torch.device("meta"):
            probe = self.task.build(vocabulary=vocabulary, inputs=ProbeInputs(inputs, settings), settings=settings)
        needed, free = COPIES * sum(4 * each.numel() for each in probe.parameters()), free_memory(self.device)
        if needed > free:
            raise InputError(
                f"a probe of these sizes needs {human_bytes(needed)} for its training, and {human_bytes(free)} are "
                "free: choose smaller layers, or fewer"
            )

    def _rebuild(self, saved: SavedProbe) -> Probe[Any, Any]:
        return saved.rebuild(self.task, self.sources.select(INPUT_KINDS[saved.kind])).to(self.device)

    def _score(
        self, probe: Probe[Any, Any], seed: int, settings: TrainingSettings
    ) -> tuple[dict[str, Any], Sequence[Any]]:
        """Scores, metrics and counts on the reported split, of which details are printed, and the predictions."""
        predictions, counts, metrics = evaluate(self.task, probe, self.reported, settings.batch_size)
        details = self.task.details(self.reported.examples, predictions)
        if details:
            print(details, flush=True)
        scored = {
            "seeds": [seed],
            "scores": [metrics[self.task.metric]],
            "figures": {name: [value] for name, value in metrics.items()},
            "mixes": [probe.inputs.mix_weights()],
            "items": len(counts),
            "counts": [[[int(one) if one == int(one) else round(one, 6) for one in row] for row in counts.tolist()]],
        }
        return scored, predictions

    def _facts(self, kind: InputKind, settings: TrainingSettings) -> dict[str, Any]:
        """What a line of results says about a probe before it is trained or scored."""
        options, splits = self.options, self.splits.values()
        folder = Path(os.path.abspath(next(iter(self.reported.files)))).parent
        return {
            "task": self.task.name,
            "dataset": options.name or folder.name or "data",
            "inputs": kind.name,
            "metric": self.task.metric,
            "unit": self.task.unit,
            "item": self.task.item,
            "split": self.reported.name,
            "data": {split.name: split.files for split in splits},
            "fingerprints": {split.name: split.fingerprints for split in splits},
            "reader": asdict(options.reader),
            "settings": asdict(settings),
            "preset": "small" if options.small else "published",
            "device": str(self.device),
            "threads": torch.get_num_threads(),
            **self.sources.select(kind).describe(),
            "elmoc": VERSION,
        }

    def _probe_path(self, kind: InputKind, seed: int) -> Path:
        return Path(self.options.save, f"{kind.name}.seed{seed}")

    def _is_saved(self, kind: InputKind, seed: int) -> bool:
        return bool(self.options.save) and is_saved(self._probe_path(kind, seed))

    def _prediction_path(self, kind: InputKind, seed: int) -> Path:
        name = f"{self.task.name}.{kind.name}.seed{seed}.{self.reported.name}{self.task.suffix}"
        return Path(self.options.predictions, name)

    @contextmanager
    def _locked(self, kind: InputKind, seed: int) -> Iterator[None]:
        """Keep other processes from writing the saved probe and the predictions of a seed, unless they are there.

        Raises `InputError` where one writes them now, and for predictions that are there without the probe.
        """
        with ExitStack() as stack:
            if self.options.save and not self._is_saved(kind, seed):
                stack.enter_context(locked(self._probe_path(kind, seed)))
            given = self.options.predictions
            for path in self.task.prediction_paths(self._prediction_path(kind, seed)) if given else ():
                if not (self._is_saved(kind, seed) and path.exists()):
                    stack.enter_context(locked(path))
                if not self._is_saved(kind, seed):  # else they were written with the probe
                    refuse_existing(path)
            yield

    def _write_predictions(self, kind: InputKind, seed: int, predictions: Sequence[Any]) -> None:
        if self.options.predictions:
            self.task.write_predictions(self._prediction_path(kind, seed), self.reported.examples, predictions)


def _joined(seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One line of results of the lines of several seeds: lists, which have an element a seed, are concatenated.

    What a probe does not say that an earlier version saved is left out.
    """
    joined = {name: value for name, value in seeds[0].items() if all(name in record for record in seeds)}
    for name, value in joined.items():
        if isinstance(value, list):
            joined[name] = [one for record in seeds for one in record[name]]
    joined["figures"] = {name: [record["figures"][name][0] for record in seeds] for name in joined["figures"]}
    joined["mean"], joined["deviation"] = mean_and_deviation(joined["scores"])
    return joined
