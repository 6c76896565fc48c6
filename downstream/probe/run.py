"""What do the probes of one command share: splits, inputs, and how they are scored?"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs.model_states import ModelStates
from downstream.inputs.probe_inputs import KINDS, FeatureStates, InputSources, LayerStates, WordTable
from downstream.inputs.sentence import Sentence
from downstream.probe.settings import TrainingSettings
from downstream.probe.task import Probe, Task
from downstream.probe.training import predict_all
from elmoc.errors import InputError
from elmoc.files import fingerprint_file, refuse_existing
from elmoc.version import VERSION


@dataclass(frozen=True)
class Split:
    """The examples of one split; how many sentences come from each of its files, and the hashes of their content."""

    name: str
    examples: list[Any]
    lengths: list[int]
    files: dict[str, int]
    fingerprints: list[str]


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


def read_split(task: Task[Any, Any], name: str, paths: Sequence[Path], options: argparse.Namespace) -> Split:
    """Read the files of a split, and print a line about it; raises `InputError` for a file that is named twice."""
    examples: list[Any] = []
    files: dict[str, int] = {}
    for path in paths:
        if str(path) in files:
            raise InputError(f"--{name} names {path} twice: name it once")
        read = task.read(path, options, training=name == "train")
        files[str(path)] = sum(len(task.sentences(example)) for example in read)
        examples += read
    print(f"{name:6} {task.describe(examples)}", flush=True)
    lengths = [sum(len(sentence.words) for sentence in task.sentences(example)) for example in examples]
    return Split(name, examples, lengths, files, [fingerprint_file(path) for path in paths])


def open_sources(
    task: Task[Any, Any], splits: Sequence[Split], kinds: Sequence[str], options: argparse.Namespace
) -> InputSources:
    """Look up what the kinds of inputs read for all sentences of the splits, and print what it is."""
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


def predict(probe: Probe[Any, Any], split: Split, settings: TrainingSettings) -> list[Any]:
    """The predictions for a split, in the order of its examples."""
    return predict_all(probe, split.examples, lengths=split.lengths, batch_size=settings.batch_size)


def figures_of(task: Task[Any, Any], split: Split, predictions: Sequence[Any]) -> dict[str, np.ndarray]:
    """The task's figures of a split."""
    return task.figures(np.sum([task.count(*pair) for pair in zip(split.examples, predictions, strict=True)], axis=0))


def _item_counts(task: Task[Any, Any], split: Split, predictions: Sequence[Any]) -> list[list[float]]:
    """The counts of each item of the bootstrap, which is an example of the split."""
    return [
        [int(one) if one == int(one) else round(one, 6) for one in task.count(example, prediction).tolist()]
        for example, prediction in zip(split.examples, predictions, strict=True)
    ]


def prediction_path(task: Task[Any, Any], options: argparse.Namespace, kind: str, seed: int, split: str) -> Path:
    """Where `--predictions` writes those of one probe."""
    path: Path = options.predictions / f"{task.name}.{kind}.seed{seed}.{split}{task.suffix}"
    return path


def refuse_predictions(task: Task[Any, Any], options: argparse.Namespace, kind: str, seed: int, split: str) -> None:
    """Those of a probe that is saved already were written with it, so they may be there."""
    saved = options.save and (options.save / f"{kind}.seed{seed}" / "probe.json").exists()
    if options.predictions and not saved:
        refuse_existing(prediction_path(task, options, kind, seed, split))


def write_predictions(run: Run, kind: str, seed: int, predictions: Sequence[Any]) -> None:
    """Write the predictions for the reported split, if they are asked for."""
    if run.options.predictions:
        path = prediction_path(run.task, run.options, kind, seed, run.reported.name)
        run.task.write_predictions(path, run.reported.examples, predictions)


def score(run: Run, seed: int, predictions: Sequence[Any]) -> dict[str, Any]:
    """Print details of the predictions for the reported split, and give scores, figures and counts."""
    task, split = run.task, run.reported
    figures = figures_of(task, split, predictions)
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


def facts_of(run: Run, kind: str, sources: InputSources, settings: TrainingSettings) -> dict[str, Any]:
    """What a line of results says about a run whatever comes out."""
    options, reported = run.options, run.reported
    return {
        "task": run.task.name,
        "dataset": options.name or Path(os.path.abspath(next(iter(reported.files)))).parent.name or "data",
        "inputs": kind,
        "metric": run.task.metric,
        "unit": run.task.unit,
        "item": run.task.item,
        "split": reported.name,
        "data": {split.name: split.files for split in run.splits},
        "fingerprints": {split.name: split.fingerprints for split in run.splits},
        "reader": run.task.reader_options(options),
        "settings": asdict(settings),
        "preset": "small" if options.small else "published",
        "device": str(run.device),
        "threads": torch.get_num_threads(),
        "features": None if sources.states is None else sources.states.describe(),
        "vectors": None if sources.words is None else sources.words.describe(),
        "elmoc": VERSION,
    }
