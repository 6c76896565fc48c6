"""Runs: probes are trained, or saved ones scored, seed by seed, and give lines of
results.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs.mixing import layer_rows
from downstream.inputs.options import INPUT_KINDS, InputKind, InputOptions
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources, open_sources
from downstream.printing import say_lines
from downstream.probe.options import ProbeData, ProbeOptions
from downstream.probe.saved import RECORD, SavedProbe, read_probe, save_probe
from downstream.probe.splits import Split, read_split
from downstream.probe.task import Probe, Task
from downstream.probe.training import evaluate, train_probe
from downstream.results.line import ResultLine, joined
from downstream.settings import (
    ReaderOptions,
    TrainingSettings,
    settings_of_inputs,
    with_changes,
)
from elmoc.devices import checked_device
from elmoc.errors import InputError, say
from elmoc.version import VERSION

# A part of a line of results.
Facts = dict[str, Any]


def train_probes(
    task: Task[Any, Any], data: ProbeData, inputs: InputOptions, options: ProbeOptions
) -> Iterator[ResultLine]:
    """Train a probe for every kind of inputs and every seed.

    Yields the line of results of each kind. All that can be wrong with options and data
    is told before the first probe is trained.
    """
    if not data.train or not data.dev:
        raise InputError(
            "give --train FILES and --dev FILES (or --evaluate-only PROBE and --test "
            "FILES)"
        )
    kinds = options.kinds(inputs)
    seeds = options.seed_list()
    preset = task.small if options.preset == "small" else task.published
    chosen = with_changes(preset, options.settings)
    reader = with_changes(task.reader, options.reader)
    _make_folders(options)
    splits = [
        read_split(task, name, paths, reader, fraction=chosen.train_fraction)
        for name, paths in data.files.items()
    ]
    all_runs = _open_runs(
        task=task,
        name=data.name,
        inputs=inputs,
        options=options,
        settings={kind: settings_of_inputs(chosen, kind) for kind in kinds},
        reader=reader,
        splits=splits,
    )
    vocabulary = task.vocabulary(splits[0].examples)
    for runs in all_runs:
        yield joined([runs.trained(seed, vocabulary) for seed in seeds])


def score_probes(
    task: Task[Any, Any],
    paths: Sequence[Path],
    data: ProbeData,
    inputs: InputOptions,
    options: ProbeOptions,
) -> Iterator[ResultLine]:
    """Score saved probes on the test part of `data`.

    Yields a line of results for each kind of inputs. The data is read as the training's
    was, but for the reader's options that are given.
    """
    probes = [read_probe(Path(path)) for path in paths]
    lines = [probe.line for probe in probes]
    first = lines[0]
    shared = {
        str([line.task, line.preset, line.reader, line.fingerprints]) for line in lines
    }
    settings = {line.inputs: line.settings for line in lines}
    distinct = {
        (line.inputs, line.seeds[0])
        for line in lines
        if line.settings == settings[line.inputs]
    }
    is_one = len(shared) == 1 and first.task == task.name
    if not is_one or len(distinct) < len(lines):
        raise InputError(
            f"--evaluate-only takes probes of one training of the task {task.name}, "
            "one of each kind of inputs and seed: score others by two commands"
        )
    # Options of the reader that are given go before those of the training.
    where = str(probes[0].path / RECORD)
    trained_reader = with_changes(task.reader, first.reader, where=where)
    reader = with_changes(trained_reader, options.reader)
    _make_folders(options)
    all_runs = _open_runs(
        task=task,
        name=data.name,
        inputs=inputs,
        options=replace(options, preset=first.preset),
        settings={
            INPUT_KINDS[probe.line.inputs]: probe.settings_of(task) for probe in probes
        },
        reader=reader,
        splits=[read_split(task, "test", data.test, reader)],
    )
    for runs in all_runs:
        # Probes are read one after the other: a large one fills much of a GPU.
        name = runs.kind.name
        alike = [probe for probe in probes if probe.line.inputs == name]
        yield joined([runs.scored(probe) for probe in alike])


def _open_runs(
    *,
    inputs: InputOptions,
    options: ProbeOptions,
    settings: Mapping[InputKind, TrainingSettings],
    splits: Sequence[Split],
    **others: Any,
) -> "list[_Runs]":
    """The runs on each kind of inputs, by the settings of each; sources are opened."""
    sentences = [sentence for split in splits for sentence in split.sentences]
    sources = open_sources(settings, inputs, sentences=sentences, device=options.device)
    runs = []
    for kind, of_kind in settings.items():
        selected = sources.select(kind)
        if selected.states is not None:
            # It raises for a layer that is not there, before anything is trained.
            layer_rows(of_kind.state_layers, selected.states.names)
        runs.append(
            _Runs(
                options=options,
                kind=kind,
                settings=of_kind,
                splits=splits,
                sources=selected,
                **others,
            )
        )
    return runs


def _make_folders(options: ProbeOptions) -> None:
    """Find out before training whether results can be written."""
    checked_device(options.device)
    of_results = options.out and options.out.parent
    for folder in (options.save, options.predictions, of_results):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    # Several runs may append to one file, which is why it is not emptied.
    if options.out is not None:
        open(options.out, "a").close()


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """The runs on one kind of inputs, which differ in their seeds.

    task: of the probes.
    name: of the data; the folder of the reported file where it is empty.
    options: of the call.
    kind: of the inputs.
    settings: the hyper-parameters for this kind of inputs.
    reader: the options with which the splits were read.
    splits: train (unless saved probes are scored), and others; the last is reported.
    sources: of the inputs of this kind.
    """

    task: Task[Any, Any]
    name: str
    options: ProbeOptions
    kind: InputKind
    settings: TrainingSettings
    reader: ReaderOptions
    splits: Sequence[Split]
    sources: InputSources

    def facts(self) -> Facts:
        """The part of a line of results that holds before training or scoring."""
        reported = self.splits[-1]
        # Data is named by its folder, as in `wnut17/dev.conll`.
        folder = Path(os.path.abspath(next(iter(reported.files)))).parent
        return {
            "task": self.task.name,
            "dataset": self.name or folder.name or "data",
            "inputs": self.kind.name,
            "metric": self.task.metric,
            "item": self.task.item,
            "split": reported.name,
            "data": {split.name: split.files for split in self.splits},
            "fingerprints": {split.name: split.fingerprints for split in self.splits},
            "reader": asdict(self.reader),
            "settings": asdict(self.settings),
            "preset": self.options.preset,
            "device": self.options.device,
            "threads": torch.get_num_threads(),
            **self.sources.describe(),
            "elmoc": VERSION,
        }

    def trained(self, seed: int, vocabulary: dict[str, Any]) -> ResultLine:
        """The line of results of one seed; its probe is trained unless it is saved."""
        facts = self.facts()
        path = Path(self.options.save or "", f"{self.kind.name}.seed{seed}")
        if self.options.save is not None and (path / RECORD).exists():
            saved = read_probe(path)
            saved.check_alike(facts)
            return self.scored(saved)
        title = f"{self.task.name} {self.kind.name} seed {seed}"
        train = self.splits[0]
        # Weights, dropout and order of batches are drawn from the seed alone, so that a
        # run that goes on after some seeds gives the same numbers.
        torch.manual_seed(seed)
        inputs = ProbeInputs(self.sources, self.settings)
        # Words are matched to states as they are when they are standardised.
        if self.settings.standardise:
            inputs.standardise_words(train.sentences)
        if self.settings.match_vectors:
            inputs.match_words(train.sentences)
        probe = self.task.model(inputs=inputs, settings=self.settings, **vocabulary)
        probe.to(self.options.device)
        trained = train_probe(
            self.task,
            probe,
            train=train,
            dev=self.splits[1],
            settings=self.settings,
            generator=np.random.default_rng(seed),
            title=title,
        )
        scored = self._score(probe, seed)
        line = ResultLine(**{**facts, **scored, **trained})
        say(
            f"{title}: {line.split} {line.scores[0]:.2f} (dev {line.dev_scores[0]:.2f} "
            f"in epoch {line.best_epochs[0]} of {line.epochs[0]}; "
            f"{line.seconds[0]:.0f} s, {line.examples_per_second[0]:,.0f} "
            f"{self.task.unit} a second in training)"
        )
        if self.options.save is not None:
            save_probe(path, probe, vocabulary, line)
        return line

    def scored(self, saved: SavedProbe) -> ResultLine:
        """The line of results of a saved probe on the reported split."""
        facts = self.facts()
        # The line names the data of the training, too.
        for name in ("data", "fingerprints"):
            facts[name] = {**getattr(saved.line, name), **facts[name]}
        probe = saved.rebuild(self.task, self.sources)
        scores = self._score(probe, saved.line.seeds[0])
        line = replace(saved.line, **facts, **scores)
        say(f"{saved.path}, trained before: {line.split} {line.scores[0]:.2f}")
        return line

    def _score(self, probe: Probe[Any, Any], seed: int) -> Facts:
        """The part of a line of results about scores; predictions are written."""
        split = self.splits[-1]
        probe.to(self.options.device)
        predictions, counts, metrics = evaluate(
            self.task, probe, split, self.settings.batch_size
        )
        details = self.task.details(split.examples, predictions)
        if details:
            say_lines(details)
        if self.options.predictions is not None:
            name = f"{self.task.name}.{self.kind.name}.seed{seed}.{split.name}"
            path = self.options.predictions / f"{name}{self.task.suffix}"
            self.task.write_predictions(path, split.examples, predictions)
        return {
            "seeds": [seed],
            "scores": [metrics[self.task.metric]],
            "figures": {name: [value] for name, value in metrics.items()},
            "mixes": [probe.inputs.mix_weights()],
            "items": len(counts),
            "counts": [[_short(row) for row in counts.tolist()]],
        }


def _short(numbers: Sequence[float]) -> list[int | float]:
    """Counts as a line of results has them; most of them are whole numbers."""
    return [int(one) if one == int(one) else round(one, 6) for one in numbers]
