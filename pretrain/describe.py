"""The description of a run: how large it is, and the time and memory that one update
takes here.
"""

import time
from contextlib import closing
from itertools import islice

from torch import nn

from elmoc.devices import peak_memory
from pretrain.data.batches import Batch, gather
from pretrain.setup import TrainingSetup
from pretrain.step import TrainStep

# operations of training for a weight of a matrix product, and a word: a multiplication
# and an addition each for the output, for the gradient of the input, and for the
# gradient of the weight
TRAINED = 6


def describe(setup: TrainingSetup) -> str:
    """Parameters, operations a word, length, and what one trial update takes; it
    changes no weight.
    """
    data = setup.data
    parts: dict[str, nn.Module] = {
        "encoder": setup.encoder,
        "output layer": setup.output_layers,
    }
    if setup.input_network is not None:
        parts = {setup.input_network.title: setup.input_network, **parts}
    counts = {
        name: sum(parameter.numel() for parameter in part.parameters())
        for name, part in parts.items()
    }
    unit = data.corpus.unit
    words = data.words_per_update
    lines = [
        f"encoder: {setup.encoder.config.sizes.description}, {' and '.join(data.directions)}",
        f"trainable parameters: {sum(counts.values()):,}",
        *(
            f"  {name}: {counts[name]:,} parameters, {operations_a_word(part) / 1e6:,.2f} MFLOP a word"
            for name, part in parts.items()
        ),
        f"corpus: {data.corpus.types:,} types, {data.corpus.train_tokens:,} training tokens"
        + (
            f", {data.targets.zero_rows:,} types without a target vector"
            if data.reads_targets
            else ""
        ),
        f"updates: {setup.updates:,} of {data.streams} streams × {data.window} {unit} ({data.updates_per_epoch:,} an "
        f"epoch), {setup.updates * words / 1e6:,.1f}M {unit}",
        *([] if data.unread_text is None else [f"warning: {data.unread_text}"]),
    ]
    seconds, peak = measure(setup)
    return "\n".join(
        [
            *lines,
            f"one update on {setup.execution.device} in {setup.execution.precision}, by {setup.implementation}:",
            f"  {seconds:.3f} s, {words / seconds:,.0f} {unit}/s, peak memory {peak / 2**20:,.0f} MiB",
        ]
    )


def operations_a_word(module: nn.Module) -> int:
    """Floating-point operations of training in the products with the weights of a
    module, for a word.

    All weights of two or more axes are taken for factors of products, lookups and
    convolutions included.
    """
    return TRAINED * sum(
        parameter.numel() for parameter in module.parameters() if parameter.ndim > 1
    )


def measure(setup: TrainingSetup) -> tuple[float, int]:
    """Seconds of one update, and the peak of memory in bytes: of the GPU, or of this
    process on a CPU.

    The update before it, which allocates and compiles, is not timed. With a learning
    rate of 0 no weight changes.
    """
    batches = first_batches(setup, 2)
    seconds = 0.0
    with closing(TrainStep(setup, setup.new_state())) as train_step:
        for batch in batches:
            started = time.perf_counter()
            train_step(batch, 0.0)  # which waits for a GPU
            seconds = time.perf_counter() - started
    return seconds, peak_memory(setup.execution.device)


def first_batches(setup: TrainingSetup, count: int) -> list[Batch]:
    """The first windows of this process with their vectors, on the device."""
    device = setup.execution.device
    maker = setup.data.batch_maker()
    own = setup.processes.stream_slice(setup.data.streams)
    windows = setup.data.windows(own=own)
    return [gather(window, maker, device) for window in islice(windows, count)]
