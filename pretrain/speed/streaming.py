"""Streaming: the time that windows and their vectors take to reach the device, alone and under training."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from statistics import median

from pretrain.data.batches import Batch
from pretrain.data.loader import gather_window, ring, shape_of, stream_batches
from pretrain.data.windows import windows_of
from pretrain.setup import TrainingSetup
from pretrain.speed.contestants import Contestant
from pretrain.speed.timing import spread, timed

WINDOWS = 20
UPDATES = 100
ROUNDS = 5


def first_batches(setup: TrainingSetup, count: int) -> list[Batch]:
    """The first windows of this process with their vectors, on the device."""
    device, processes = setup.execution.device, setup.processes
    tables = setup.data.tables(device, resident=False)
    own = processes.stream_slice(setup.data.streams)
    windows = setup.data.windows(directions=processes.directions, own=own)
    return [gather_window(window, tables, device) for window in islice(windows, count)]


def seconds_a_window(setup: TrainingSetup) -> dict[str, float]:
    """Seconds that each step of streaming takes for one window alone (medians).

    loader: reading and shuffling the first shards, shared out over their windows, and cutting one; gather: finding the
    distinct words and copying their rows; copy: sending these to a GPU.
    """
    data, device = setup.data, setup.execution.device
    windows = data.windows()
    opening, first = timed(lambda: next(windows), device)
    share = opening / max(1, windows_of(data.groups.group(0, 0).tokens, data.streams, data.window))
    tables = data.tables(device, resident=False)
    (slot,) = ring(1, device, partial(tables.buffers, shape_of(first.ids)))
    seconds: dict[str, list[float]] = {"loader": [], "gather": [], "copy": []}
    for _ in range(WINDOWS):
        cutting, window = timed(lambda: next(windows), device)
        slot.wait()
        gathering, count = timed(partial(tables.fill, window, slot.host), device)
        copying, _ = timed(partial(slot.send, count), device)
        for name, value in zip(seconds, (share + cutting, gathering, copying), strict=True):
            seconds[name].append(value)
    return {name: median(values) for name, values in seconds.items()}


def streamed_and_resident(contestant: Contestant) -> dict[str, dict[str, float]]:
    """Words/s of training from the corpus with vectors streamed to the device, and with the whole tables on it.

    Raises an `InputError` when they do not fit.
    """
    data, device = contestant.setup.data, contestant.setup.execution.device
    data.require_device_memory(device)
    rates: dict[str, list[float]] = {"streamed": [], "resident": []}

    def updates(batches: Iterator[Batch]) -> None:
        for batch in islice(batches, UPDATES):
            contestant.update(batch)

    with ExitStack() as stack:
        streams = {}
        for name in rates:
            tables = data.tables(device, resident=name == "resident")
            streams[name] = stack.enter_context(closing(stream_batches(data.windows(), tables, device)))
        for _ in range(1 + ROUNDS):
            for name, batches in streams.items():
                taken, _ = timed(partial(updates, batches), device)
                rates[name].append(UPDATES * data.words_per_update / taken)
    return {name: spread(values[1:]) for name, values in rates.items()}  # the first round warms up
