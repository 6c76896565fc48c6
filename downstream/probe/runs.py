"""Runs: probes are trained and scored seed by seed, and give lines of results."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs.options import InputOptions, layer_rows
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources, open_sources
from downstream.probe.options import ProbeData, ProbeOptions
from downstream.probe.splits import Split, read_split
from downstream.probe.task import Task
from downstream.probe.training import evaluate, train_probe
from downstream.results.records import Result, joined
from downstream.settings import TrainingSettings, settings_of_inputs, with_changes
from elmoc.devices import checked_device
from elmoc.errors import InputError, say
from elmoc.version import VERSION


def train_probes(
    task: Task[Any, Any], data: ProbeData, inputs: InputOptions, options: ProbeOptions
) -> Iterator[Result]:
    """Train a probe for every kind of inputs and every seed.

    Yields the line of results of each kind. All that can be wrong with options and data
    is told before the first probe is trained.
    """
    if not data.train or not data.dev:
        raise InputError("give --train FILES and --dev FILES")
    kinds = options.kinds(inputs)
    seeds = options.seed_list()
    preset = task.small if options.preset == "small" else task.published
    chosen = with_changes(preset, options.settings)
    reader = with_changes(task.reader, options.reader)
    checked_device(options.device)
    # Whether results can be written is found out before training.
    if options.predictions is not None:
        options.predictions.mkdir(parents=True, exist_ok=True)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        # Several runs may append to one file, which is why it is not emptied.
        open(options.out, "a").close()
    splits = [
        read_split(task, name, paths, reader, fraction=chosen.train_fraction)
        for name, paths in data.files.items()
    ]
    sources = open_sources(
        kinds,
        inputs,
        sentences=list(chain.from_iterable(split.sentences for split in splits)),
        device=options.device,
    )
    if sources.states is not None:
        # It raises for a layer that is not there.
        layer_rows(chosen.state_layers, sources.states.names)
    vocabulary = task.vocabulary(splits[0].examples)
    reported = splits[-1]
    # Data is named by its folder, as in `wnut17/dev.conll`.
    folder = Path(os.path.abspath(next(iter(reported.files)))).parent
    for kind in kinds:
        settings = settings_of_inputs(chosen, kind)
        own_sources = sources.select(kind)
        facts = {
            "task": task.name,
            "dataset": data.name or folder.name or "data",
            "inputs": kind.name,
            "metric": task.metric,
            "item": task.item,
            "split": reported.name,
            "data": {split.name: split.files for split in splits},
            "fingerprints": {split.name: split.fingerprints for split in splits},
            "reader": asdict(reader),
            "settings": asdict(settings),
            "preset": options.preset,
            "device": options.device,
            "threads": torch.get_num_threads(),
            "features": own_sources.states and own_sources.states.described,
            "vectors": own_sources.words and own_sources.words.described,
            "elmoc": VERSION,
        }
        lines = [
            _trained(
                task,
                options,
                sources=own_sources,
                settings=settings,
                splits=splits,
                vocabulary=vocabulary,
                facts=facts,
                seed=seed,
            )
            for seed in seeds
        ]
        yield joined(lines)


def _trained(
    task: Task[Any, Any],
    options: ProbeOptions,
    *,
    sources: InputSources,
    settings: TrainingSettings,
    splits: Sequence[Split],
    vocabulary: dict[str, Any],
    facts: dict[str, Any],
    seed: int,
) -> Result:
    """The line of results of one probe, which is trained and scored; its predictions
    are written.

    Args:
        task: of the probe.
        options: of the call.
        sources: of the probe's inputs.
        settings: the hyper-parameters for these inputs.
        splits: train, dev, and test if there is one; the last is scored.
        vocabulary: what the task's model has to know of the training data.
        facts: fields of the line that are known before.
        seed: of its training.
    """
    name = f"{task.name}.{facts['inputs']}.seed{seed}"
    train = splits[0]
    reported = splits[-1]
    # Weights, dropout and order of batches are drawn from the seed alone, so that it
    # gives the same numbers in any run.
    torch.manual_seed(seed)
    inputs = ProbeInputs(sources, settings)
    # Words are matched to states as they are when they are standardised.
    if settings.standardise:
        inputs.standardise_words(train.sentences)
    if settings.match_vectors:
        inputs.match_words(train.sentences)
    probe = task.model(inputs=inputs, settings=settings, **vocabulary)
    probe.to(options.device)
    trained = train_probe(
        task,
        probe,
        train=train,
        dev=splits[1],
        settings=settings,
        generator=np.random.default_rng(seed),
        title=name,
    )
    predictions, counts, metrics = evaluate(task, probe, reported, settings.batch_size)
    if options.predictions is not None:
        path = options.predictions / f"{name}.{reported.name}{task.suffix}"
        task.write_predictions(path, reported.examples, predictions)
    say(
        f"{name}: {reported.name} {metrics[task.metric]:.2f} "
        f"(dev {trained['dev_scores'][0]:.2f} in epoch {trained['best_epochs'][0]} of "
        f"{trained['epochs'][0]}; {trained['seconds'][0]:.0f} s, "
        f"{trained['examples_per_second'][0]:,.0f} {task.unit} a second in training)"
    )
    return Result(
        seeds=[seed],
        scores=[metrics[task.metric]],
        figures={metric: [value] for metric, value in metrics.items()},
        mixes=[inputs.mix_weights()],
        items=len(counts),
        counts=[[_short(row) for row in counts.tolist()]],
        **facts,
        **trained,
    )


def _short(numbers: Sequence[float]) -> list[int | float]:
    """Counts as a line of results has them; most of them are whole numbers."""
    return [int(one) if one == int(one) else round(one, 6) for one in numbers]
