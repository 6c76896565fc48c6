"""Streaming: the time that windows and their vectors take to reach the device, alone and under training."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from statistics import median

from pretrain.data.loader import Batch, gather, ring, shape_of, stream_batches
from pretrain.data.tables import open_tables, require_device_memory
from pretrain.data.windows import Position, Window, shard_groups, training_windows, windows_of
from pretrain.setup import TrainingSetup
from pretrain.speed.contestants import Contestant
from pretrain.speed.timing import spread, timed

WINDOWS = 20
UPDATES = 100
ROUNDS = 5


def read_windows(setup: TrainingSetup) -> Iterator[Window]:
    """The windows that a run of `setup` begins with."""
    train = setup.config.train
    return training_windows(
        setup.corpus,
        streams=train.streams,
        window=train.window,
        directions=train.directions,
        seed=train.seed,
        position=Position(),
        mix=train.mix_shards,
    )


def first_batches(setup: TrainingSetup, count: int) -> list[Batch]:
    """The first windows with their vectors, on the device."""
    windows = islice(read_windows(setup), count)
    return [gather(window.ids, setup.inputs, setup.targets, window.next).to(setup.device) for window in windows]


def seconds_a_window(setup: TrainingSetup) -> dict[str, float]:
    """Seconds that each step of streaming takes for one window alone (medians).

    loader: reading and shuffling the first shards, shared out over their windows, and cutting one; gather: finding the
    distinct words and copying their rows; copy: sending these to a GPU.
    """
    train, device = setup.config.train, setup.device
    windows = read_windows(setup)
    opening, first = timed(lambda: next(windows), device)
    (group, *_) = shard_groups(setup.corpus, mix=train.mix_shards, seed=train.seed, epoch=0)
    share = opening / max(1, windows_of(sum(shard.tokens for shard in group), train.streams, train.window))
    tables = open_tables(setup.inputs, setup.targets, device, on_device=False)
    (slot,) = ring(1, device, partial(tables.buffers, shape_of(first.ids)))
    seconds: dict[str, list[float]] = {"loader": [], "gather": [], "copy": []}
    for _ in range(WINDOWS):
        cutting, window = timed(lambda: next(windows), device)
        slot.wait()
        gathering, count = timed(partial(tables.fill, window.ids, slot.host), device)
        copying, _ = timed(partial(slot.send, count), device)
        for name, value in zip(seconds, (share + cutting, gathering, copying), strict=True):
            seconds[name].append(value)
    return {name: median(values) for name, values in seconds.items()}


def streamed_and_resident(contestant: Contestant) -> dict[str, dict[str, float]]:
    """Words/s of training from the corpus with vectors streamed to the device, and with the whole tables on it.

    Raises an `InputError` when they do not fit.
    """
    setup = contestant.setup
    require_device_memory(setup.inputs, setup.targets, setup.device)
    rates: dict[str, list[float]] = {"streamed": [], "resident": []}

    def updates(batches: Iterator[Batch]) -> None:
        for batch in islice(batches, UPDATES):
            contestant.update(batch)

    with ExitStack() as stack:
        streams = {}
        for name in rates:
            tables = open_tables(setup.inputs, setup.targets, setup.device, on_device=name == "resident")
            streams[name] = stack.enter_context(closing(stream_batches(read_windows(setup), tables, setup.device)))
        for _ in range(1 + ROUNDS):
            for name, batches in streams.items():
                taken, _ = timed(partial(updates, batches), setup.device)
                rates[name].append(UPDATES * setup.words_per_update / taken)
    return {name: spread(values[1:]) for name, values in rates.items()}  # the first round warms up
