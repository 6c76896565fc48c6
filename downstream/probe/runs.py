"""Runs: probes are trained, or read, and scored seed by seed, and give lines of
results.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from downstream.inputs.options import InputOptions, layer_rows
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources, open_sources
from downstream.probe.checkpoint import ProbeCheckpoint
from downstream.probe.options import ProbeData, ProbeOptions
from downstream.probe.saved import RECORD, WEIGHTS, ProbeRecord, read_probe, save_probe
from downstream.probe.splits import Split, read_splits
from downstream.probe.task import Probe, Task
from downstream.probe.training import evaluate, train_probe
from downstream.results.records import Facts, Result, encoder_facts, joined
from downstream.settings import TrainingSettings, settings_of_inputs, with_changes
from elmoc.devices import checked_device
from elmoc.errors import InputError, reading, say
from elmoc.files.checksums import fingerprint
from elmoc.version import VERSION
from elmoc.weights import read_tensors


def score_probes(
    task: Task[Any, Any], data: ProbeData, inputs: InputOptions, options: ProbeOptions
) -> Iterator[Result]:
    """Train a probe for every kind of inputs and every seed, or read a saved one, and
    score it.

    Yields the line of results of each kind. All that can be wrong with options and data
    is told before the first probe is trained.
    """
    saved, options = _read_saved(task, data, options)
    kinds = options.kinds(inputs)
    seeds = options.seed_list() if saved is None else saved.result.seeds
    # The place of the settings, which errors name.
    where = "" if saved is None else f"{options.evaluate_only}/{RECORD}"
    preset = task.small if options.preset == "small" else task.published
    chosen = with_changes(preset, options.settings, where=where)
    reader = with_changes(task.reader, options.reader, where=where)
    checked_device(options.device)
    for folder in (options.save, options.predictions):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    splits = read_splits(
        task,
        data.files,
        reader,
        fraction=chosen.train_fraction,
        trained=None if saved is None else saved.labels,
    )
    sources = open_sources(
        kinds,
        inputs,
        sentences=list(chain.from_iterable(split.sentences for split in splits)),
        device=options.device,
    )
    if sources.states is not None and saved is None:
        # It raises for a layer that is not there.
        layer_rows(chosen.state_layers, sources.states.names)
    # A saved probe has the vocabulary of its training.
    vocabulary = {} if saved else task.vocabulary(splits[0].examples)
    reported = splits[-1]
    # Data is named by its folder, as in `wnut17/dev.conll`.
    data_folder = Path(os.path.abspath(next(iter(reported.files)))).parent
    for kind in kinds:
        settings = settings_of_inputs(chosen, kind)
        own_sources = sources.select(kind)
        facts = {
            "task": task.name,
            "dataset": data.name or data_folder.name or "data",
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
            _run_seed(
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


def _read_saved(
    task: Task[Any, Any], data: ProbeData, options: ProbeOptions
) -> tuple[ProbeRecord | None, ProbeOptions]:
    """The record of a saved probe, and the options of its training in place of the
    call's; None, and the call's, where probes are trained.
    """
    if options.evaluate_only is None:
        if not data.train or not data.dev:
            raise InputError("give --train FILES and --dev FILES")
        return None, options
    saved = read_probe(options.evaluate_only)
    trained = saved.result
    if trained.task != task.name or set(data.files) != {"test"} or options.settings:
        raise InputError(
            f"--evaluate-only {options.evaluate_only} goes with the task "
            f"{trained.task} and --test FILES, without --train, --dev and "
            "hyper-parameters"
        )
    return saved, replace(
        options,
        inputs=trained.inputs,
        preset=trained.preset,
        settings=trained.settings,
        # An option that is given goes before that of the training.
        reader=trained.reader | options.reader,
        # The probe is there already.
        save=None,
    )


def _run_seed(
    task: Task[Any, Any],
    options: ProbeOptions,
    *,
    sources: InputSources,
    settings: TrainingSettings,
    splits: Sequence[Split],
    vocabulary: Facts,
    facts: Facts,
    seed: int,
) -> Result:
    """The line of results of one probe, which is trained or read, scored and written.

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
    reported = splits[-1]
    checkpoint = _checkpoint(options, name, facts, seed)
    if options.evaluate_only is None:
        # A seed gives the same weights, dropout and order of batches in any run.
        torch.manual_seed(seed)
        probe = _new_probe(task, sources, settings, splits[0], vocabulary)
        trained = train_probe(
            task,
            probe.to(options.device),
            train=splits[0],
            dev=splits[1],
            settings=settings,
            generator=np.random.default_rng(seed),
            title=name,
            checkpoint=checkpoint,
        )
    else:
        probe, trained = _load_probe(
            options.evaluate_only,
            task,
            sources=sources,
            settings=settings,
            facts=facts,
        )
    predictions, counts, metrics = evaluate(task, probe, reported, settings.batch_size)
    if options.predictions is not None:
        path = options.predictions / f"{name}.{reported.name}{task.suffix}"
        task.write_predictions(path, reported.examples, predictions)
    line = Result(
        **{
            **facts,
            # Of a saved probe, all fields are known, and the scores are new.
            **trained,
            "seeds": [seed],
            "scores": [metrics[task.metric]],
            "figures": {metric: [value] for metric, value in metrics.items()},
            "mixes": [probe.inputs.mix_weights()],
            "items": len(counts),
            "counts": [counts.tolist()],
        }
    )
    say(
        f"{name}: {reported.name} {line.mean:.2f} "
        f"(dev {line.dev_scores[0]:.2f} in epoch {line.best_epochs[0]} of "
        f"{line.epochs[0]}; {line.seconds[0]:.0f} s, "
        f"{line.examples_per_second[0]:,.0f} {task.unit} a second in training)"
    )
    if options.save is not None:
        path = _saved_path(options.save, facts, seed)
        save_probe(path, probe, vocabulary, splits[0].labels, line)
    if checkpoint is not None:
        checkpoint.path.unlink(missing_ok=True)
    return line


def _checkpoint(
    options: ProbeOptions, name: str, facts: Facts, seed: int
) -> ProbeCheckpoint | None:
    """The checkpoint of a training that is described by facts; None where no probe is
    kept.

    Raises:
        InputError: the probe would take the place of another training's.
    """
    if options.save is None:
        return None
    path = _saved_path(options.save, facts, seed)
    if (path / RECORD).exists():
        before = read_probe(path).result
        now = replace(before, **facts)
        if any(
            getattr(before, fact) != getattr(now, fact)
            for fact in ("comparable", "encoder", "word_vectors")
        ):
            raise InputError(
                f"{path} is the probe of another training: choose another --save"
            )
    # Files of data are told apart by their contents, wherever they are.
    told = json.dumps(
        facts | {"seed": seed, "data": None, "dataset": None}, sort_keys=True
    )
    return ProbeCheckpoint(
        options.save / f"{name}.checkpoint", fingerprint([told.encode()])
    )


def _saved_path(folder: Path, facts: Facts, seed: int) -> Path:
    """Where the probe of a training is kept."""
    return folder / f"{facts['inputs']}.seed{seed}"


def _new_probe(
    task: Task[Any, Any],
    sources: InputSources,
    settings: TrainingSettings,
    train: Split,
    vocabulary: Facts,
) -> Probe[Any, Any]:
    """A probe with random weights, whose word vectors are scaled by the training
    data.
    """
    inputs = ProbeInputs(sources, settings)
    # Words are matched to states as they are when they are standardised.
    if settings.standardise:
        inputs.standardise_words(train.sentences)
    if settings.match_vectors:
        inputs.match_words(train.sentences)
    return task.model(inputs=inputs, settings=settings, **vocabulary)


def _load_probe(
    path: Path,
    task: Task[Any, Any],
    *,
    sources: InputSources,
    settings: TrainingSettings,
    facts: Facts,
) -> tuple[Probe[Any, Any], Facts]:
    """A saved probe, and all fields of a line of results: those about its training are
    kept, and those of `facts` are of this run.

    Args:
        path: of its directory.
        task: of the probe.
        sources: of the probe's inputs.
        settings: of its training.
        facts: fields of the line that are known before.

    Raises:
        InputError: other word vectors or another encoder than in the training, or a
            damaged directory.
    """
    record = read_probe(path)
    trained = record.result
    with reading(path / RECORD):
        now = replace(
            trained,
            **{
                **facts,
                # Results are compared only where files of the training agree, too.
                "data": trained.data | facts["data"],
                "fingerprints": trained.fingerprints | facts["fingerprints"],
            },
        )
        if now.word_vectors != trained.word_vectors:
            raise InputError(
                "the probe was trained with other word vectors, those of "
                f"{(trained.vectors or {}).get('origin')}"
            )
        if now.encoder != trained.encoder:
            raise InputError(
                "the probe was trained with another encoder, "
                f"{encoder_facts(trained.features or {})}"
            )
        record.checksums[WEIGHTS].check_whole(path / WEIGHTS)
        probe = task.model(
            inputs=ProbeInputs(sources, settings),
            settings=settings,
            **record.vocabulary,
        )
        probe.load_state_dict(read_tensors(path / WEIGHTS)[1])
    return probe.to(now.device), vars(now)
