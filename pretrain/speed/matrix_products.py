"""Matrix products: those of one update, how long they take alone, and the best rate of large ones on this machine.

The products of an update set the bound that its time is compared with.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from elmoc.encoders.bidirectional import EncoderConfig
from elmoc.encoders.lstm import LstmSizes
from elmoc.kernels.matmul import prepare_input_gradient, prepare_linear, weight_gradient_matmul
from elmoc.progress import progress_bar
from pretrain.speed.timing import seconds_each
from pretrain.step import DirectionThreads

SIZES = {"cpu": (1024, 2048, 4096), "cuda": (4096, 8192, 16384)}
REPEATS = 3


Prepare = Callable[[Tensor, Tensor, Tensor], Callable[[], object]]
"""From what is read x [rows, inputs], a weight w [outputs, inputs] and y [rows, outputs] (room for the output, or its
gradient): the call that multiplies them."""
# of each: the output, the gradient of what is read, the gradient of the weight
AUTOGRAD: tuple[Prepare, ...] = (
    lambda x, w, y: partial(F.linear, x, w),
    lambda x, w, y: partial(torch.mm, y, w),
    lambda x, w, y: partial(torch.mm, y.t(), x),
)
"""The products of a linear layer under autograd."""
FUSED: tuple[Prepare, ...] = (
    lambda x, w, y: partial(prepare_linear(w), x, y),
    lambda x, w, y: partial(prepare_input_gradient(w), y, x),
    lambda x, w, y: partial(weight_gradient_matmul, y, x),
)
"""Those of a weight of `FusedRecurrence`."""


@dataclass(frozen=True)
class TimedProduct:
    """A product of `rows` rows and a weight [outputs, inputs], made `count` times in an update of a direction."""

    prepare: Prepare
    inputs: int
    outputs: int
    rows: int
    count: int

    @property
    def flops(self) -> int:
        """Floating-point operations of one product."""
        return 2 * self.rows * self.inputs * self.outputs


def products_of(
    kinds: Iterable[Prepare], inputs: int, outputs: int, rows: tuple[int, ...], counts: tuple[int, ...]
) -> list[TimedProduct]:
    """The products of one weight, where `rows` and `counts` are those of each of the `kinds`."""
    each = zip(kinds, rows, counts, strict=True)
    return [TimedProduct(prepare, inputs, outputs, number, count) for prepare, number, count in each if count]


def lstm_sizes(config: EncoderConfig) -> tuple[int, int, int]:
    """P, C and L of an LSTM encoder, the only kind whose products are known here."""
    assert isinstance(config.sizes, LstmSizes)
    return config.sizes.projection_size, config.sizes.cell_size, config.sizes.layers


def step_by_step_products(
    config: EncoderConfig, target_size: int, streams: int, window: int, *, inputs_at_once: bool
) -> list[TimedProduct]:
    """Those of an update of a recurrence under autograd, where weights get their gradients step by step.

    Its input product is of the whole window at once, as in `plain_recurrence`, or step by step, too, as in AllenNLP's
    loop.
    """
    projection, cell, layers = lstm_sizes(config)
    words, steps = streams * window, layers * window
    rows, count = (words, layers) if inputs_at_once else (streams, steps)
    return [
        # the word vectors are frozen, and a window's first state is cut off from the graph: no gradients go there
        *products_of(AUTOGRAD, config.word_vector_size, projection, (words,) * 3, (1, 0, 1)),
        *products_of(AUTOGRAD, projection, 4 * cell, (rows,) * 3, (count,) * 3),
        *products_of(AUTOGRAD, projection, 4 * cell, (streams,) * 3, (steps, steps - layers, steps)),
        *products_of(AUTOGRAD, cell, projection, (streams,) * 3, (steps,) * 3),
        *products_of(AUTOGRAD, projection, target_size, (words,) * 3, (1,) * 3),
    ]


def fused_products(config: EncoderConfig, target_size: int, streams: int, window: int) -> list[TimedProduct]:
    """Those of an update of `FusedRecurrence`: input and state together, weights' gradients over all steps at once."""
    projection, cell, layers = lstm_sizes(config)
    words, steps = streams * window, layers * window
    return [
        *products_of(AUTOGRAD, config.word_vector_size, projection, (words,) * 3, (1, 0, 1)),
        *products_of(FUSED, 2 * projection, 4 * cell, (streams, streams, words), (steps, steps, layers)),
        *products_of(FUSED, cell, projection, (streams, streams, words), (steps, steps, layers)),
        *products_of(AUTOGRAD, projection, target_size, (words,) * 3, (1,) * 3),
    ]


def flops_per_word(config: EncoderConfig, target_size: int, directions: int) -> int:
    """Floating-point operations of training's matrix products for a word that each of the directions reads.

    A multiplication and an addition for each entry of a weight matrix, three times: for the output, for the gradient of
    the input, and for the gradient of the weight.
    """
    projection, cell, layers = lstm_sizes(config)
    layer = 4 * cell * projection + 4 * cell * projection + projection * cell  # W_x, W_h, W_p
    entries = config.word_vector_size * projection + layers * layer + projection * target_size
    return directions * 3 * 2 * entries


def seconds_of_products(
    products: Sequence[TimedProduct], runner: DirectionThreads, device: torch.device, dtype: torch.dtype
) -> float:
    """Seconds of an update's products: each timed alone, in all directions with threads shared as there."""
    seconds = 0.0
    with torch.no_grad():
        for product in products:
            shapes = (product.rows, product.inputs), (product.outputs, product.inputs), (product.rows, product.outputs)
            calls = {
                direction: product.prepare(*(filled(*shape, device, dtype) for shape in shapes))
                for direction in runner.directions
            }
            seconds += product.count * seconds_each(calls, runner, device)
    return seconds


def filled(rows: int, columns: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """A tensor of ordinary numbers, quicker to make than one of random numbers only."""
    block = torch.randn(min(rows * columns, 1 << 18), device=device)
    return block.to(dtype).repeat(-(-rows * columns // len(block)))[: rows * columns].view(rows, columns)


def matrix_rate(device: torch.device, dtype: torch.dtype, directions: tuple[str, ...]) -> float:
    """Operations a second: the best of large square products.

    Both by PyTorch's own product and by that of the fused recurrence, one on all threads and one a direction side by
    side.
    """
    best = 0.0
    for size in progress_bar(iterable=SIZES[device.type], desc=f"matrix rate {dtype}", leave=False):
        products = [TimedProduct(prepare, size, size, size, 1) for prepare in (AUTOGRAD[1], FUSED[0])]
        for places in {directions[:1], directions}:
            with closing(DirectionThreads(places, device)) as runner:
                for product in products * REPEATS:
                    seconds = seconds_of_products([product], runner, device, dtype)
                    best = max(best, len(places) * product.flops / seconds)
    return best
