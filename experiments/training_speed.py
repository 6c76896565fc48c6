"""Speed of training: words a second of the same encoder trained in four ways, update by
update in turn.

    python -m experiments.training_speed [CONFIG.toml [STREAMS… WAYS…]]

By default the paper's sizes with 128 streams, in all ways: AllenNLP's cell, one
direction after the other, as published (`allennlp`); the plain recurrence (`plain`);
the fused one in float32 and in bf16 (`fused-float32`, `fused-bf16`). All begin with the
same weights and read the same made-up text. The peak of memory is that until then, so
streams should ascend. Of a GPU the share of an update's time is printed, too, in which
it runs no kernel.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain, cycle
from statistics import median

import torch

from elmoc.devices import has_bf16, peak_memory
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.process import keep_freed_memory
from experiments.allennlp_cell import allennlp_encoder
from experiments.synthetic import made_up_corpus
from pretrain import CONFIGS
from pretrain.config import load_config
from pretrain.describe import first_batches
from pretrain.setup import TrainingSetup, set_up
from pretrain.step import TrainStep

TYPES = 200_000
# Windows that are read again and again, so that nothing waits for data.
BATCHES = 4
WARM_UP = 2
UPDATES = 5
# Operations for a weight of a matrix product, and a word: a multiplication and an
# addition each for the output, the gradient of the input, and that of the weight.
OPERATIONS = 6


def copied(encoder: BidirectionalEncoder, *, fast: bool) -> BidirectionalEncoder:
    """A copy of an encoder that runs by the fused recurrence, or by the plain one."""
    directions = encoder.directions
    other = BidirectionalEncoder(encoder.config, directions=directions, fast=fast)
    weights = {name: value.clone() for name, value in encoder.weights().items()}
    other.load_weights(weights)
    return other


# Ways of training: what makes an encoder of the same function, and the precision of the
# products.
WAYS = {
    "allennlp": (allennlp_encoder, "float32"),
    "plain": (partial(copied, fast=False), "float32"),
    "fused-float32": (partial(copied, fast=True), "float32"),
    "fused-bf16": (partial(copied, fast=True), "bf16"),
}


def updates_of(setup: TrainingSetup, name: str) -> Callable[[object], float]:
    """A function that makes one update of a way of training from a batch, and gives its
    seconds.
    """
    encoder_of, precision = WAYS[name]
    own = replace(
        setup,
        encoder=encoder_of(setup.encoder),
        output_layers=deepcopy(setup.output_layers),
        execution=replace(setup.execution, precision=precision),
    )
    step = TrainStep(own, own.new_state(), side_by_side=name != "allennlp")
    rate = setup.config.schedule.base

    def update(batch: object) -> float:
        started = time.perf_counter()
        # It waits for a GPU.
        step(batch, rate)
        return time.perf_counter() - started

    return update


def idle_share(update: Callable[[object], float], batch: object, usual: float) -> float:
    """The share of an update's `usual` seconds in which a GPU runs no kernel."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CUDA]
    ) as record:
        update(batch)
    # Profiling makes an update longer, but not its kernels.
    busy = sum(
        each.time_range.elapsed_us()
        for each in record.events()
        if each.device_type == torch.autograd.DeviceType.CUDA
        and not each.is_user_annotation
    )
    return 1 - busy / 1e6 / usual


def setups(config_file: str, streams: Sequence[int]) -> Iterator[TrainingSetup]:
    """Yield the training of a config on made-up text with each number of streams."""
    config = load_config(config_file)
    tables = {config.data.input_vectors, config.data.target_vectors}
    tokens = (BATCHES + 1) * max(streams) * (config.train.window + 1)
    with made_up_corpus(TYPES, max(tokens, 1_000_000), tables=tables) as corpus:
        for each in streams:
            overrides = [
                f"data.corpus={corpus}",
                f"train.streams={each}",
                "train.precision=float32",
            ]
            yield set_up(load_config(config_file, overrides))
            # The recorded graphs, which would count in the peak of memory.
            gc.collect()


def compare(setup: TrainingSetup, ways: Sequence[str]) -> None:
    """Print a line a way of training."""
    device = setup.execution.device
    names = [name for name in ways if WAYS[name][1] == "float32" or has_bf16(device)]
    batches = cycle(first_batches(setup, BATCHES))
    updates = {name: updates_of(setup, name) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for update in updates.values():
        for _ in range(WARM_UP):
            update(next(batches))
    for _ in range(UPDATES):
        for name, update in updates.items():
            seconds[name].append(update(next(batches)))
    words = setup.data.words_per_update
    weights = chain(setup.encoder.parameters(), setup.output_layers.parameters())
    operations = OPERATIONS * sum(each.numel() for each in weights if each.ndim > 1)
    print(
        f"{setup.data.streams} streams × {setup.data.window}, "
        f"{setup.encoder.config.sizes.description}, {device}, "
        f"{torch.get_num_threads()} threads, peak memory "
        f"{peak_memory(device) / 1e9:.2f} GB"
    )
    for name, taken in seconds.items():
        speeds = sorted(words / each for each in taken)
        speed = median(speeds)
        pairs = zip(seconds[names[0]], taken, strict=True)
        ratio = median(one / other for one, other in pairs)
        print(
            f"  {name:17} {speed:9,.0f} words/s ({speeds[0]:,.0f} to "
            f"{speeds[-1]:,.0f}) {ratio:6.2f} × {names[0]} "
            f"{operations * speed / 1e9:8,.0f} GFLOP/s",
            flush=True,
        )
        if device.type == "cuda":
            idle = idle_share(updates[name], next(batches), median(taken))
            print(f"  {name:17} {idle:9.0%} of the time idle", flush=True)


def main() -> None:
    """Measure each number of streams in turn."""
    keep_freed_memory()
    config_file, *named = sys.argv[1:] or [str(CONFIGS / "elmo_c.toml")]
    streams = [int(each) for each in named if each.isdigit()] or [128]
    ways = [each for each in named if not each.isdigit()] or list(WAYS)
    for setup in setups(config_file, streams):
        compare(setup, ways)


if __name__ == "__main__":
    main()
