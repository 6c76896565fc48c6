"""Benchmark: what is measured, in which order, and what the report says of it."""

import platform
import re
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError
from elmoc.progress import progress_bar
from pretrain.config import RunConfig
from pretrain.setup import TrainingSetup, set_up
from pretrain.speed.comparison import compare
from pretrain.speed.contestants import DTYPES, WAYS, untimed_updates, why_not, with_streams
from pretrain.speed.matrix_products import flops_per_word, matrix_rate
from pretrain.speed.memory import kept_bytes_per_word
from pretrain.speed.synthetic_corpus import corpus_for

FORMAT = "elmoc-speed"
VERSION = 2


def benchmark(
    config: RunConfig, *, streams: Sequence[int], contestants: Sequence[str], updates: int, warm_up: int
) -> Generator[dict[str, Any], None, None]:
    """The report as far as it is: before the first comparison, and after each.

    Args:
        config: the sizes, window, directions, device, threads and (where it names one) corpus.
        streams: the numbers of streams, a comparison each.
        contestants: names in `WAYS`.
        updates, warm_up: timed and untimed updates of each contestant in a comparison.
    """
    with corpus_for(config.data, tokens=max(streams) * (2 * config.train.window + 1)) as corpus:
        setup = reference_setup(config, corpus, max(streams))
        report = first_report(setup, contestants)
        report |= {"corpus": config.data.corpus or "synthetic", "updates": updates, "warm_up": warm_up}
        yield report
        names = list(report["kept_bytes_per_word"])
        if any(WAYS[name].graph for name in names):
            setup = replace(setup, data=replace(setup.data, fixed_sizes=True))
        total = len(streams) * sum(untimed_updates(name, warm_up) + updates for name in names)
        with progress_bar(total=total, desc="speed", unit=" updates") as progress:
            for number in streams:
                comparison = compare(
                    with_streams(setup, number),
                    names,
                    updates=updates,
                    warm_up=warm_up,
                    flops_per_word=report["flops_per_word"],
                    flops_per_second=report["flops_per_second"],
                    progress=progress,
                )
                report["comparisons"].append(comparison)
                yield report


def reference_setup(config: RunConfig, corpus: str, streams: int) -> TrainingSetup:
    """A run on a corpus by the plain recurrence, whose weights the contestants take."""
    data = replace(config.data, corpus=corpus, tables_on_device=False)
    train = replace(config.train, precision="fp32", recurrence="plain", recompute=False, cuda_graph=False)
    return set_up(replace(config, data=data, train=replace(train, streams=streams)))


def require_known(setup: TrainingSetup) -> None:
    """Raise an `InputError` for an encoder, input or output layer whose products the benchmark does not know."""
    config = setup.config
    unknown = {
        f"encoder.kind={config.encoder.kind}": not isinstance(config.encoder, LstmSizes),
        f"input_layer.kind={config.input_layer.kind}": config.input_layer.shared,
        f"output_layer.kind={config.output_layer.kind}": not config.output_layer.has_fixed_sizes,
    }
    for name, is_unknown in unknown.items():
        if is_unknown:
            raise InputError(
                f"the benchmark does not know the products of {name}: give a --config of ELMo's LSTM against the "
                "continuous or contrastive output layer"
            )


def first_report(setup: TrainingSetup, contestants: Sequence[str]) -> dict[str, Any]:
    """What is compared where, and what does not depend on the number of streams."""
    require_known(setup)
    data, device, directions = setup.data, setup.execution.device, setup.encoder.directions
    skipped = {name: reason for name in contestants if (reason := why_not(name, device))}
    names = [name for name in contestants if name not in skipped]
    if not names:
        reasons = ", ".join(f"{name} ({reason})" for name, reason in skipped.items())
        raise InputError(f"no contestant is left: {reasons}")
    precisions = {name: WAYS[name].precision for name in names}
    with progress_bar(iterable=names, desc="memory a word", leave=False) as progress:
        kept = {name: kept_bytes_per_word(name, setup) for name in progress}
    return {
        "format": FORMAT,
        "version": VERSION,
        "device": str(device),
        "processor": processor(device),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "encoder": setup.encoder.config.to_dict() | {"target_size": data.targets.size},
        "directions": list(directions),
        "window": data.window,
        "types": data.corpus.types,
        "flops_per_word": flops_per_word(setup.encoder.config, data.targets.size, len(directions)),
        "skipped": skipped,
        "kernels": {
            name: setup.encoder.config.sizes.implementation(fast=True, device=device, dtype=DTYPES[precision])
            for name, precision in precisions.items()
            if name.startswith("fused")
        },
        "kept_bytes_per_word": kept,
        "flops_per_second": {
            precision: matrix_rate(device, dtype, directions)
            for precision, dtype in DTYPES.items()
            if precision in precisions.values()
        },
        "comparisons": [],
    }


def processor(device: torch.device) -> str:
    """What the device is called by its maker."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError):
        if found := re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE):
            return found[1]
    return platform.processor() or platform.machine()
