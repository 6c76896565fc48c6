"""Runs of a command: probes are trained, or saved ones scored, seed by seed, and give
lines of results.

A saved probe is a directory. `probe.json` holds the vocabulary and the line of results,
which says the task, the inputs and the settings, and `probe.safetensors` the weights.
The word vectors and features that it reads are named by fingerprint, not copied.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from downstream.inputs.mixing import layer_rows
from downstream.inputs.options import INPUT_KINDS, InputKind
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources, open_sources
from downstream.printing import say
from downstream.probe.task import Probe, Split, Task, read_split
from downstream.probe.training import evaluate, train_probe
from downstream.results.records import encoder_identity, mean_and_deviation
from downstream.settings import TrainingSettings, settings_of_inputs
from elmoc.devices import checked_device
from elmoc.errors import InputError, reading
from elmoc.files.checksums import FileChecksum
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory
from elmoc.settings import convert
from elmoc.version import VERSION
from elmoc.weights import contiguous, read_tensors

FORMAT = "elmoc-probe"
FORMAT_VERSION = 4
RECORD = "probe.json"
WEIGHTS = "probe.safetensors"
# Facts of a line of results that hold before training.
GIVEN = ("task", "inputs", "split", "settings", "reader", "fingerprints")


@dataclass(frozen=True, kw_only=True)
class ProbeRecord:
    """What is in `probe.json`; `record` is the line of results of its training;
    `weights` checks the other file.
    """

    vocabulary: dict[str, Any]
    record: dict[str, Any]
    weights: FileChecksum


def save_probe(
    path: Path,
    probe: Probe[Any, Any],
    vocabulary: dict[str, Any],
    record: dict[str, Any],
) -> None:
    """Write a probe's directory; `record` is its line of results, of one seed."""
    with atomic_directory(path) as partial:
        safetensors.torch.save_file(contiguous(probe.state_dict()), partial / WEIGHTS)
        content = ProbeRecord(
            vocabulary=vocabulary,
            record=record,
            weights=FileChecksum.of(partial / WEIGHTS),
        )
        write_record(partial / RECORD, content, format=FORMAT, version=FORMAT_VERSION)


@dataclass(frozen=True)
class SavedProbe:
    """A trained probe that was read from its directory."""

    path: Path
    content: ProbeRecord

    def settings_of(self, task: Task[Any, Any]) -> TrainingSettings:
        """The hyper-parameters of its training."""
        return convert(
            self.content.record["settings"],
            type(task.published),
            where=str(self.path / RECORD),
        )

    def rebuild(self, task: Task[Any, Any], sources: InputSources) -> Probe[Any, Any]:
        """The probe with its trained weights, reading from `sources`, which must be
        those it was trained on.
        """
        self.check_sources(sources.describe())
        settings = self.settings_of(task)
        weights_path = self.path / WEIGHTS
        self.content.weights.check_whole(weights_path)
        with reading(weights_path):
            probe = task.model(
                inputs=ProbeInputs(sources, settings),
                settings=settings,
                **self.content.vocabulary,
            )
            probe.load_state_dict(read_tensors(weights_path)[1])
        return probe

    def check_facts(self, facts: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless it was trained with the task, settings, data and
        sources of a run's `facts`.
        """
        if differing := [
            name for name in GIVEN if self.content.record[name] != facts[name]
        ]:
            raise InputError(
                f"{self.path} was trained with other {', '.join(differing)} than this run has: choose another "
                "directory for --save, or remove it"
            )
        self.check_sources(facts)

    def check_sources(self, described: Mapping[str, Any]) -> None:
        """Raise an `InputError` unless `features` and `vectors`, as described, are the
        same as in the training.
        """
        for name, identity in (
            ("features", encoder_identity),
            ("vectors", itemgetter("fingerprint")),
        ):
            trained = self.content.record[name]
            given = described[name]
            if trained is not None and identity(trained) != identity(given):
                raise InputError(
                    f"{self.path} was trained on other {name} than those given: {identity(trained)}"
                )


def read_probe(path: Path) -> SavedProbe:
    """Read a probe directory; raises `InputError` when it is missing, incomplete or
    foreign.
    """
    return SavedProbe(
        path,
        read_record(path / RECORD, ProbeRecord, format=FORMAT, version=FORMAT_VERSION),
    )


# What a line of results says about the training of its probes: it stays true when they
# are scored on other data.
TRAINING_FIELDS = (
    "preset",
    "dev_scores",
    "best_epochs",
    "epochs",
    "curves",
    "seconds",
    "examples_per_second",
)

Line = dict[str, Any]


def train_probes(task: Task[Any, Any], options: argparse.Namespace) -> Iterator[Line]:
    """Train a probe for every kind of inputs and every seed; yields the line of results
    of each kind.

    options  as `downstream.probe.cli.parse` gives them
    """
    device = checked_device(options.device)
    files = {"train": options.train, "dev": options.dev, "test": options.test}
    fraction = options.settings.train_fraction
    splits = {
        name: read_split(task, name, paths, options.reader, fraction=fraction)
        for name, paths in files.items()
        if paths
    }
    sentences = [sentence for split in splits.values() for sentence in split.sentences]
    sources = open_sources(options.kinds, sentences=sentences, options=options)
    if sources.states is not None:
        layer_rows(
            options.settings.state_layers, sources.states.names
        )  # before anything is trained
    vocabulary = task.vocabulary(splits["train"].examples)
    reported = list(splits.values())[-1]
    for kind in options.kinds:
        settings = settings_of_inputs(options.settings, kind)
        selected = sources.select(kind)
        facts = _facts(task, options, kind, splits, settings, selected)
        lines = []
        for seed in options.seed_list:
            path = Path(options.save or "", f"{kind.name}.seed{seed}")
            predictions = _predictions_path(task, options, kind, seed)
            if options.save and (path / RECORD).exists():
                saved = read_probe(path)
                saved.check_facts(facts)
                say(f"{path}: {saved.content.record['scores'][0]:.2f}, trained before")
                lines.append(saved.content.record | {"dataset": facts["dataset"]})
                if predictions:
                    probe = saved.rebuild(task, selected).to(device)
                    _score(
                        task,
                        probe,
                        reported,
                        settings.batch_size,
                        seed=seed,
                        path=predictions,
                    )
                continue
            torch.manual_seed(seed)
            inputs = ProbeInputs(selected, settings)
            if settings.standardise:
                inputs.standardise_words(splits["train"].sentences)
            if settings.match_vectors:
                inputs.match_words(splits["train"].sentences)
            probe = task.model(inputs=inputs, settings=settings, **vocabulary).to(
                device
            )
            title = f"{task.name} {kind.name} seed {seed}"
            trained = train_probe(
                task,
                probe,
                train=splits["train"],
                dev=splits["dev"],
                settings=settings,
                generator=np.random.default_rng(seed),
                title=title,
            )
            scored = _score(
                task, probe, reported, settings.batch_size, seed=seed, path=predictions
            )
            say(
                f"{title}: {reported.name} {scored['scores'][0]:.2f} (dev {trained['dev_scores'][0]:.2f} in epoch "
                f"{trained['best_epochs'][0]} of {trained['epochs'][0]}; {trained['seconds'][0]:.0f} s, "
                f"{trained['examples_per_second'][0]:,.0f} {task.unit} a second in training)"
            )
            lines.append(facts | scored | trained)
            if options.save:
                save_probe(path, probe, vocabulary, lines[-1])
        yield joined(lines)


def score_probes(task: Task[Any, Any], options: argparse.Namespace) -> Iterator[Line]:
    """Score saved probes on `--test`; yields a line of results for those that differ in
    their seeds alone.

    The data is read like the training's, but for the options of the reader that the
    command line gives.
    """
    device = checked_device(options.device)
    probes = [read_probe(path) for path in options.evaluate_only]
    records = [saved.content.record for saved in probes]
    alike = {(record["task"], str(record["reader"])) for record in records}
    differing = {(record["inputs"], record["seeds"][0]) for record in records}
    if (
        len(alike) > 1
        or records[0]["task"] != task.name
        or len(differing) < len(probes)
    ):
        raise InputError(
            f"--evaluate-only takes probes of the task {task.name}, whose data was read with the same options, and one "
            "of each kind of inputs and seed: score others by two commands"
        )
    kinds = [INPUT_KINDS[record["inputs"]] for record in records]
    given = {
        name: value
        for name, value in vars(options).items()
        if name in vars(task.reader)
    }
    given = {name: value for name, value in given.items() if value is not None}
    reader = asdict(task.reader) | records[0]["reader"] | given
    options.reader = convert(
        reader,
        type(task.reader),
        where=str(probes[0].path / RECORD),
    )
    reported = read_split(task, "test", options.test, options.reader)
    sources = open_sources(kinds, sentences=reported.sentences, options=options)
    lines: dict[str, list[Line]] = {}
    for saved, kind in zip(probes, kinds, strict=True):
        record = saved.content.record
        settings = saved.settings_of(task)
        probe = saved.rebuild(task, sources.select(kind)).to(device)
        facts = _facts(
            task, options, kind, {"test": reported}, settings, sources.select(kind)
        )
        facts |= {name: record[name] | facts[name] for name in ("data", "fingerprints")}
        facts |= {name: record[name] for name in TRAINING_FIELDS}
        seed = record["seeds"][0]
        path = _predictions_path(task, options, kind, seed)
        scored = _score(
            task, probe, reported, settings.batch_size, seed=seed, path=path
        )
        say(f"{saved.path}: test {scored['scores'][0]:.2f}")
        lines.setdefault(
            str([kind.name, facts["settings"], facts["fingerprints"]]), []
        ).append(facts | scored)
    yield from map(joined, lines.values())


def _score(
    task: Task[Any, Any],
    probe: Probe[Any, Any],
    split: Split,
    batch_size: int,
    *,
    seed: int,
    path: Path | None,
) -> Line:
    """What a line of results says of a probe's scores on a split; predictions are
    written to `path`.
    """
    predictions, counts, metrics = evaluate(task, probe, split, batch_size)
    if details := task.details(split.examples, predictions):
        say(details)
    if path is not None:
        task.write_predictions(path, split.examples, predictions)
    return {
        "seeds": [seed],
        "scores": [metrics[task.metric]],
        "figures": {name: [value] for name, value in metrics.items()},
        "mixes": [probe.inputs.mix_weights()],
        "items": len(counts),
        "counts": [
            [
                [int(one) if one == int(one) else round(one, 6) for one in row]
                for row in counts.tolist()
            ]
        ],
    }


def _facts(
    task: Task[Any, Any],
    options: argparse.Namespace,
    kind: InputKind,
    splits: Mapping[str, Split],
    settings: TrainingSettings,
    sources: InputSources,
) -> Line:
    """What a line of results says about a probe before it is trained or scored; the
    last split is reported.
    """
    reported = list(splits.values())[-1]
    folder = Path(os.path.abspath(next(iter(reported.files)))).parent
    return {
        "task": task.name,
        "dataset": options.name or folder.name or "data",
        "inputs": kind.name,
        "metric": task.metric,
        "item": task.item,
        "split": reported.name,
        "data": {split.name: split.files for split in splits.values()},
        "fingerprints": {split.name: split.fingerprints for split in splits.values()},
        "reader": asdict(options.reader),
        "settings": asdict(settings),
        "preset": "small" if options.small else "published",
        "device": options.device,
        "threads": torch.get_num_threads(),
        **sources.describe(),
        "elmoc": VERSION,
    }


def _predictions_path(
    task: Task[Any, Any], options: argparse.Namespace, kind: InputKind, seed: int
) -> Path | None:
    name = f"{task.name}.{kind.name}.seed{seed}.{'test' if options.test else 'dev'}{task.suffix}"
    return Path(options.predictions, name) if options.predictions else None


def joined(seeds: Sequence[Line]) -> Line:
    """One line of results from several seeds' lines: lists, which have an element a
    seed, are concatenated.
    """
    line = {
        name: [one for each in seeds for one in each[name]]
        if isinstance(value, list)
        else value
        for name, value in seeds[0].items()
    }
    line["figures"] = {
        name: [each["figures"][name][0] for each in seeds] for name in line["figures"]
    }
    line["mean"], line["deviation"] = mean_and_deviation(line["scores"])
    return line
