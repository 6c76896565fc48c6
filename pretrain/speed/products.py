"""What kinds of matrix product does training make, and how long does one take alone?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from elmoc.kernels.matmul import prepare_input_gradient, prepare_linear, weight_gradient_matmul
from pretrain.execution.direction_threads import DirectionThreads
from pretrain.speed.timing import seconds_each

Call = Callable[[], object]
Random = Callable[..., Tensor]


@dataclass(frozen=True)
class TimedProduct:
    """One shape of matrix product, [rows, inner] · [inner, columns], made `count` times in an update of a direction."""

    name: str
    rows: int
    inner: int
    columns: int
    count: int
    prepare: Callable[[Random], Call]
    """StepInputs what makes tensors of a shape, the library call that the update makes, with its operands."""

    @property
    def flops(self) -> int:
        """Floating-point operations of one product."""
        return 2 * self.rows * self.inner * self.columns


def linear(
    name: str, rows: int, inputs: int, outputs: int, count: int, *, input_gradients: int | None = None
) -> list[TimedProduct]:
    """The three products of an `nn.Linear` that reads [rows, inputs] `count` times, under autograd.

    `input_gradients` is how many of these need the gradient of what was read; None: all.
    """

    def forward(random: Random) -> Call:
        read, weight = random(rows, inputs), random(outputs, inputs)
        return lambda: F.linear(read, weight)

    def input_gradient(random: Random) -> Call:
        gradient, weight = random(rows, outputs), random(outputs, inputs)
        return lambda: torch.mm(gradient, weight)

    def weight_gradient(random: Random) -> Call:
        gradient, read = random(rows, outputs), random(rows, inputs)
        return lambda: torch.mm(gradient.t(), read)

    needed = count if input_gradients is None else input_gradients
    return [
        TimedProduct(name, rows, inputs, outputs, count, forward),
        *(
            [TimedProduct(f"{name}, gradient of input", rows, outputs, inputs, needed, input_gradient)]
            if needed
            else []
        ),
        TimedProduct(f"{name}, gradient of weight", outputs, rows, inputs, count, weight_gradient),
    ]


def fused_linear(name: str, streams: int, window: int, inputs: int, outputs: int, layers: int) -> list[TimedProduct]:
    """The three products of a weight of `FusedRecurrence`: two in every step, and one over all steps of the window."""

    def forward(random: Random) -> Call:
        product = prepare_linear(random(outputs, inputs))
        read, out = random(streams, inputs), random(streams, outputs)
        return lambda: product(read, out)

    def input_gradient(random: Random) -> Call:
        product = prepare_input_gradient(random(outputs, inputs))
        gradient, out = random(streams, outputs), random(streams, inputs)
        return lambda: product(gradient, out)

    def weight_gradient(random: Random) -> Call:
        gradient, read = random(window * streams, outputs), random(window * streams, inputs)
        return lambda: weight_gradient_matmul(gradient, read)

    steps = layers * window
    return [
        TimedProduct(name, streams, inputs, outputs, steps, forward),
        TimedProduct(f"{name}, gradient of input", streams, outputs, inputs, steps, input_gradient),
        TimedProduct(f"{name}, gradient of weight", outputs, window * streams, inputs, layers, weight_gradient),
    ]


def time_products(
    products: Sequence[TimedProduct], runner: DirectionThreads, device: torch.device, dtype: torch.dtype
) -> list[float]:
    """Seconds of one of each product in every direction of `runner`, with threads shared as in an update."""

    def random(*shape: int) -> Tensor:
        return filled(device, dtype, shape)

    seconds = []
    with torch.no_grad():
        for product in products:
            calls = {direction: product.prepare(random) for direction in runner.directions}
            seconds.append(seconds_each(calls, runner, device))
    return seconds


def filled(device: torch.device, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """A tensor of ordinary numbers, quicker to make than as many random ones."""
    size = torch.Size(shape).numel()
    block = torch.randn(min(size, 1 << 18), device=device)
    return block.to(dtype).repeat(-(-size // len(block)))[:size].view(shape)
