"""The description of a run: how large it is, and the time and memory that one update
takes here.
"""

import time
from contextlib import closing
from itertools import islice

from torch import nn

from elmoc.devices import peak_memory
from pretrain.data.batches import Batch
from pretrain.setup import TrainingSetup
from pretrain.step import TrainStep


def describe(setup: TrainingSetup) -> str:
    """Parameters, length, and what one trial update takes; it changes no weight."""
    data = setup.data
    unit = data.corpus.unit
    words = data.words_per_update
    corpus = (
        f"{data.corpus.types:,} types, {data.corpus.train_tokens:,} training tokens"
    )
    if data.reads_targets:
        corpus += f", {data.targets.zero_rows:,} types without a target vector"
    seconds, peak = measure(setup)
    lines = [
        f"encoder: {setup.encoder.config.sizes.description}, "
        f"{' and '.join(data.directions)}",
        *describe_parts(setup),
        f"corpus: {corpus}",
        f"updates: {setup.updates:,} of {data.streams} streams × {data.window} {unit} "
        f"({data.updates_per_epoch:,} an epoch), "
        f"{setup.updates * words / 1e6:,.1f}M {unit}",
        data.unread_text and f"warning: {data.unread_text}",
        f"one update {setup.how}:",
        f"  {seconds:.3f} s, {words / seconds:,.0f} {unit}/s, "
        f"peak memory {peak / 2**20:,.0f} MiB",
    ]
    return "\n".join(filter(None, lines))


def describe_parts(setup: TrainingSetup) -> list[str]:
    """The parameters of the run, and of each part."""
    parts: dict[str, nn.Module] = {
        "encoder": setup.encoder,
        "output layer": setup.output_layers,
    }
    if setup.input_network is not None:
        parts = {setup.input_network.title: setup.input_network} | parts
    counts = {
        name: sum(each.numel() for each in part.parameters() if each.requires_grad)
        for name, part in parts.items()
    }
    return [f"trainable parameters: {sum(counts.values()):,}"] + [
        f"  {name}: {count:,} parameters" for name, count in counts.items()
    ]


def measure(setup: TrainingSetup) -> tuple[float, int]:
    """Seconds of the quickest of three updates, and the peak of memory in bytes: of the
    GPU, or of this process on a CPU.

    The update before them, which allocates and compiles, is not timed. With a learning
    rate of 0 no weight changes.
    """
    seconds = []
    with closing(TrainStep(setup, setup.new_state())) as train_step:
        for batch in first_batches(setup, 4):
            started = time.perf_counter()
            # The step waits for a GPU.
            train_step(batch, 0.0)
            seconds.append(time.perf_counter() - started)
    return min(seconds[1:]), peak_memory(setup.execution.device)


def first_batches(setup: TrainingSetup, count: int) -> list[Batch]:
    """The first windows of this process with their vectors, on the device."""
    own = setup.processes.stream_slice(setup.data.streams)
    windows = islice(setup.data.windows(own=own), count)
    maker = setup.data.batch_maker()
    return [maker.batch(window).to(setup.execution.device) for window in windows]
