"""The description of a run: how large it is, and how long it will take here."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeVar

import torch

from elmoc.settings import counted, duration
from pretrain.data.batches import Batch, gather
from pretrain.evaluation import evaluate
from pretrain.execution.cuda_graph import UNTIL_RECORDED
from pretrain.run.clock import EVALUATIONS, evaluations_of, length_within
from pretrain.setup import TrainingSetup, make_weights
from pretrain.train import new_train_step

Result = TypeVar("Result")
TRIAL_STREAMS = 128
TRIAL_UPDATES = 3
TRIAL_SHARE = 20
"""Of the words of an evaluation, one in so many is read to measure it."""


def describe(setup: TrainingSetup, init_from: str | None = None, max_seconds: float | None = None) -> str:
    """Parameters, memory, updates, and the time to expect from a short trial (of few streams where a run has many).

    `setup` has no weights yet: the trial makes them. `init_from` names a model that the run goes on from; the trial
    checks it. With `max_seconds` the length is what fits into that time, whatever the config gives.
    """
    data, directions = setup.data, setup.data.directions
    trained = setup.parameters
    updates = f"of {data.streams} streams × {data.window} {data.corpus.unit} ({data.updates_per_epoch:,} an epoch)"
    if max_seconds is None:
        words = setup.updates * data.words_per_update
        updates = f"{setup.updates:,} {updates}, {words / 1e6:,.1f}M {data.corpus.unit}"
    lines = [
        f"encoder: {setup.encoder.config.sizes.description}, {' and '.join(directions)}",
        f"trainable parameters: {trained:,} ({by_direction(setup)})",
        *parts_of(setup),
        f"corpus: {data.corpus.types:,} types, {data.corpus.train_tokens:,} training tokens",
        *([f"types without a target vector: {data.targets.zero_rows:,}"] if data.reads_targets else []),
        f"updates: {updates}",
        *([] if data.unread_text is None else [f"warning: {data.unread_text}"]),
        f"by {setup.implementation}",
        *speed_of(setup, init_from, max_seconds),
    ]
    return "\n".join(lines)


def speed_of(setup: TrainingSetup, init_from: str | None, max_seconds: float | None) -> list[str]:
    """How fast it is, and how long it takes or how much it reads in a time."""
    execution, words, unit = setup.execution, setup.data.words_per_update, setup.data.corpus.unit
    every = setup.config.evaluation.every_updates
    make_weights(setup, init_from)
    per_update, per_evaluation = measure(setup) * words, measure_evaluation(setup)
    speed = f"speed on {execution.device} in {execution.precision}: about {words / per_update:,.0f} {unit}/s"
    if execution.device.type == "cpu" and setup.data.streams > TRIAL_STREAMS:
        speed += f" with {TRIAL_STREAMS} streams"
    if max_seconds is None:
        evaluations = evaluations_of(setup.updates, every)
        updating, evaluating = setup.updates * per_update, evaluations * per_evaluation
        return [
            f"{speed}, so {duration(updating)}, and {duration(evaluating)} for "
            f"{counted(evaluations, 'evaluation')}: {duration(updating + evaluating)} in all"
        ]
    left = max_seconds - per_evaluation  # one is before the first update
    fits = length_within(left, per_update, per_evaluation, evaluations=EVALUATIONS, every=every)
    evaluations = evaluations_of(fits.updates, every)
    epochs = fits.updates / setup.data.updates_per_epoch
    text = (
        f"{speed}, so {duration(max_seconds)} are enough for {counted(fits.updates, 'update')}, "
        f"{fits.updates * words / 1e6:,.1f}M {unit}, {epochs:,.2f} epochs"
    )
    if not fits.too_long:
        text += f"; {duration(evaluations * per_evaluation)} of it are for {counted(evaluations, 'evaluation')}"
    return [text, *filter(None, [fits.about_evaluations])]


def by_direction(setup: TrainingSetup) -> str:
    """The trainable parameters of each direction, and those of the parts that they share."""
    own_parts = {"encoder"} if setup.output_layers.is_shared else {"encoder", "output layer"}
    counts = {
        name: sum(parameter.numel() for parameter in module.parameters())
        for name, module in setup.parts.items()
        if name not in own_parts
    }
    own = (setup.parameters - sum(counts.values())) // len(setup.data.directions)
    parts = [f"{count:,} in the {name} that they share" for name, count in counts.items()]
    return ", ".join([f"{own:,} a direction", *parts])


def parts_of(setup: TrainingSetup) -> list[str]:
    """A line for each part with its parameters."""
    return [
        f"  {name}: {sum(parameter.numel() for parameter in module.parameters()):,} parameters"
        for name, module in setup.parts.items()
    ]


def measure(setup: TrainingSetup) -> float:
    """Seconds a word of whole updates on this machine; with a learning rate of 0, so that no weight changes."""
    device = setup.execution.device
    if device.type == "cpu":  # more streams take longer to try, and are seldom much faster a word
        setup = replace(setup, data=replace(setup.data, streams=min(setup.data.streams, TRIAL_STREAMS)))
    with closing(new_train_step(setup, setup.new_state())) as train_step:
        recording = UNTIL_RECORDED if setup.config.train.cuda_graph else 0
        batches = first_batches(setup, recording + TRIAL_UPDATES)
        seconds = min(timed(partial(train_step, batch, 0.0), device)[0] for batch in batches)
    return seconds / setup.data.words_per_update


def measure_evaluation(setup: TrainingSetup) -> float:
    """Seconds of one evaluation on this machine, by one of a part of its words."""
    execution, words = setup.execution, setup.config.evaluation.words
    part = -(-words // TRIAL_SHARE)
    one = partial(evaluate, setup.new_state(), setup.data, setup.scorer(), words=part, execution=execution)
    return timed(one, execution.device)[0] * words / part


def first_batches(setup: TrainingSetup, count: int) -> list[Batch]:
    """The first windows of this process with their vectors, on the device."""
    device, processes = setup.execution.device, setup.processes
    maker = setup.data.batch_maker()
    own = processes.stream_slice(setup.data.streams)
    windows = setup.data.windows(directions=processes.directions, own=own)
    return [gather(window, maker, device) for window in islice(windows, count)]


def timed(function: Callable[[], Result], device: torch.device) -> tuple[float, Result]:
    """Seconds until `function` and all that it asked of the device is done, and what it returned."""

    def synchronise() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    synchronise()
    started = time.perf_counter()
    result = function()
    synchronise()
    return time.perf_counter() - started, result
