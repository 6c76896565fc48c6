"""Breakdown of training: what an update on a CPU spends its time on, in one thread, and
what the products of the recurrence take alone.

    python -m experiments.training_breakdown [CONFIG.toml [STREAMS]]

By default the paper's sizes with 128 streams, by the fused recurrence in float32 and,
where the processor has it, in bf16. The profiler's own time is in all parts.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import cycle
from timeit import repeat
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function

from elmoc.devices import CPU, factor_dtype, has_bf16
from elmoc.encoders.fused_recurrence import choose_kernels
from elmoc.kernels.lstm_step import KERNELS
from elmoc.kernels.matmul import prepare_linear
from experiments.training_speed import (
    BATCHES,
    UPDATES,
    WARM_UP,
    WAYS,
    setups,
    updates_of,
)
from pretrain import CONFIGS
from pretrain.describe import first_batches
from pretrain.setup import TrainingSetup

PRODUCTS = {"aten::mm", "mkldnn::_linear_pointwise"}
COPIES = {"aten::cat", "aten::copy_", "mkldnn::_reorder_linear_weight"}
OPTIMISER = {"Optimizer.step#Adam.step", "aten::linalg_vector_norm", "aten::mul_"}
FORWARD = {"_FusedLayer"}
BACKWARD = {"_FusedLayerBackward"}
UPDATE = {"update"}
# Parts of an update. Time counts for the first part that has an operation or label in
# each of its two sets in which the time passes.
PARTS = {
    "gates and cell": ({"gates_forward", "gates_backward"}, UPDATE),
    "projection's clip, norm": ({"output_forward", "output_backward"}, UPDATE),
    "weight gradients": ({"put_weight_gradient"}, UPDATE),
    "forward products": (PRODUCTS, FORWARD),
    "backward products": (PRODUCTS, BACKWARD),
    "casts, copies, packing": (COPIES, UPDATE),
    "optimiser, norm of all": (OPTIMISER, UPDATE),
    "Python and launches": (FORWARD | BACKWARD, UPDATE),
    "output layer and others": (UPDATE, UPDATE),
}


def names_around(event: FunctionEvent | None) -> set[str]:
    """The names of an event of a profile, and of those that it passes in."""
    return set() if event is None else {event.name} | names_around(event.cpu_parent)


def profiled(update: Callable[[], float]) -> dict[str, float]:
    """Seconds of the parts of one update."""
    with profile(activities=[ProfilerActivity.CPU]) as record:
        record_function("update")(update)()
    seconds = dict.fromkeys(PARTS, 0.0)
    for event in record.events():
        names = names_around(event)
        inside = [part for part, (a, b) in PARTS.items() if a & names and b & names]
        for part in inside[:1]:
            seconds[part] += event.self_cpu_time_total / 1e6
    return seconds


def seconds_alone(rows: int, depth: int, columns: int, dtype: torch.dtype) -> float:
    """Of a product whose second factor is packed, at its quickest."""
    product = prepare_linear(torch.randn(columns, depth).to(dtype))
    x = torch.randn(rows, depth).to(dtype)
    out = torch.empty(rows, columns, dtype=dtype)
    return min(repeat(lambda: product(x, out), number=1, repeat=WARM_UP + UPDATES))


def products_alone(setup: TrainingSetup, dtype: torch.dtype) -> float:
    """Seconds of the recurrence's products of an update: forward and backward step by
    step, of the gradients of weights at once.
    """
    sizes: Any = setup.encoder.config.sizes
    width = sizes.projection_size
    streams = setup.data.streams
    alone = 0.0
    for n, k in ((4 * sizes.cell_size, 2 * width), (width, sizes.cell_size)):
        step = seconds_alone(streams, k, n, dtype) + seconds_alone(streams, n, k, dtype)
        alone += setup.data.window * step
        alone += seconds_alone(n, setup.data.words_per_update, k, dtype)
    return sizes.layers * len(setup.data.directions) * alone


def break_down(setup: TrainingSetup, way: str) -> None:
    """Print the parts of an update, each at its quickest."""
    dtype = factor_dtype(WAYS[way][1])
    kernels: Any = choose_kernels("cpu", dtype, torch.float32)
    for kind, name in KERNELS.items():
        kernels._kernels[kind] = record_function(name)(kernels._kernels[kind])
    label = record_function("put_weight_gradient")
    kernels.put_weight_gradient = label(kernels.put_weight_gradient)
    update = updates_of(setup, way)
    batches = cycle(first_batches(setup, BATCHES))
    for _ in range(WARM_UP):
        update(next(batches))
    profiles = [profiled(partial(update, next(batches))) for _ in range(UPDATES)]
    seconds = {part: min(each[part] for each in profiles) for part in PARTS}
    whole = sum(seconds.values())
    seconds["(the products alone)"] = products_alone(setup, dtype)
    print(f"{setup.encoder.config.sizes.description}, {way}: {whole:.3f} s an update")
    for part, taken in seconds.items():
        print(f"  {part:23} {1e3 * taken:8,.1f} ms {taken / whole:6.1%}")


def main() -> None:
    """Break down the fused ways."""
    torch.set_num_threads(1)
    config_file = sys.argv[1] if len(sys.argv) > 1 else str(CONFIGS / "elmo_c.toml")
    streams = int(sys.argv[2]) if len(sys.argv) > 2 else 128
    for setup in setups(config_file, [streams]):
        for way in ("fused-float32", "fused-bf16"):
            if way == "fused-float32" or has_bf16(CPU):
                break_down(setup, way)


if __name__ == "__main__":
    main()
