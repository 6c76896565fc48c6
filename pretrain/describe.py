"""How large is a run, and how long will it take here?"""

import time

import torch

from elmoc.files import human_bytes
from pretrain.data.loader import gather
from pretrain.data.windows import Position, training_windows
from pretrain.execution.direction_threads import DirectionThreads
from pretrain.setup import TrainingSetup
from pretrain.step import train_step
from pretrain.train_state import new_state

TRIAL_STREAMS = 128
TRIAL_UPDATES = 3


def describe(setup: TrainingSetup) -> str:
    """Parameters, memory, updates, and the time to expect from a short trial (of few streams where a run has many)."""
    config = setup.config
    trained = setup.parameters
    sizes = setup.encoder.config
    seconds_per_word = measure(setup)
    words = setup.updates * setup.words_per_update
    tables = {table.path: table.rows.nbytes for table in (setup.inputs, setup.targets)}
    activations = activation_bytes(setup)
    lines = [
        f"encoder: {sizes.layers} layers, projection {sizes.projection_size}, cell {sizes.cell_size}, "
        f"{' and '.join(config.train.directions)}",
        f"trainable parameters: {trained:,} ({trained // len(config.train.directions):,} a direction)",
        f"corpus: {setup.corpus.types:,} types, {setup.corpus.train_tokens:,} training tokens",
        f"vector tables: {human_bytes(sum(tables.values()))} on disk, read through the page cache; "
        f"{setup.targets.zero_rows:,} types without a target vector",
        f"memory: weights, gradients and Adam {human_bytes(16 * trained)}, "
        f"activations about {human_bytes(activations)}",
        f"updates: {setup.updates:,} of {config.train.streams} streams × {config.train.window} words "
        f"({setup.per_epoch:,} an epoch), {words / 1e6:,.1f}M words",
        f"by {setup.recurrence}",
        f"speed on {setup.device} in {setup.precision}: about {1 / seconds_per_word:,.0f} words/s, so "
        f"{human_duration(words * seconds_per_word)} in all",
    ]
    return "\n".join(lines)


def activation_bytes(setup: TrainingSetup) -> int:
    """Roughly what autograd keeps of a window of both directions (which a CPU computes side by side)."""
    config, sizes = setup.config.train, setup.encoder.config
    cell, projection = sizes.cell_size, sizes.projection_size
    if config.recurrence == "plain":
        layer = 4 * (8 * cell + 6 * projection)
    else:  # gates and the products' other factors as they are multiplied, cells and outputs in float32
        stored = 2 if setup.precision == "bf16" else 4
        layer = stored * (4 * cell + 3 * projection) + 4 * (cell + 2 * projection)
    kept = layer + sizes.layers * 8 * projection if config.recompute else sizes.layers * layer
    return kept * setup.words_per_update * len(config.directions)


def measure(setup: TrainingSetup) -> float:
    """Seconds a word of whole updates on this machine; with a learning rate of 0, so that no weight changes."""
    config = setup.config
    streams = config.train.streams
    if setup.device.type == "cpu":  # more would hardly be faster
        streams = min(streams, TRIAL_STREAMS)
    state = new_state(setup.encoder, setup.heads, config.optimiser, config.train.seed, setup.device)
    windows = training_windows(
        setup.corpus,
        streams=streams,
        window=config.train.window,
        directions=config.train.directions,
        seed=config.train.seed,
        position=Position(),
        mix=config.train.mix_shards,
    )
    runner = DirectionThreads(config.train.directions, setup.device)
    times = []
    for _, window in zip(range(TRIAL_UPDATES), windows, strict=False):
        batch = gather(window.ids, setup.inputs, setup.targets, window.next).to(setup.device)
        started = time.monotonic()
        train_step(setup, state, batch, 0.0, runner)
        if setup.device.type == "cuda":
            torch.cuda.synchronize(setup.device)
        times.append(time.monotonic() - started)
    runner.close()
    return min(times) / (streams * config.train.window)


def human_duration(seconds: float) -> str:
    """`seconds` as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
