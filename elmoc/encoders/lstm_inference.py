"""LSTM inference: a stack of LSTM layers over whole sentences of any length, without
padding, on the CPU.

A batch has rows that read one sentence behind the other, so that nearly all of them end
together, and its words are
packed: step t holds only rows that have more than t words. `kernels/inference.cpp` runs
a layer over all steps, and writes the layer states where they belong.

Letters: B sentences, M words of the text, N words that are read, I the width of what a
layer reads, P projection, C cell, L layers. S is the type of the factors of matrix
products, float32 or bfloat16; sums and states are float32.
"""

import ctypes
import heapq
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from elmoc.encoders import EncoderState, SentenceWords
from elmoc.encoders.recurrence import LSTMState, RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.compiling import KernelBuildError, default_compiler, load_library
from elmoc.kernels.cpu import SOURCE

SPARE_WORDS = (
    32  # rows that the kernels may read behind the last word of what a layer reads
)

# Cells of a panel of the step's weight, columns of any panel, and depth of a block of a
# panel in bfloat16.
_CELLS = 16
_COLUMNS = 64
_DEPTH = 32


class _Arguments(ctypes.Structure):
    """As `Arguments` in `inference.cpp`, which says what each is."""

    _fields_ = tuple(
        (name, kind)
        for kind, names in (
            (
                ctypes.c_void_p,
                "inputs active places strides begins step_weight projection bias",
            ),
            (ctypes.c_void_p, "norm_weight norm_bias hidden cell outputs"),
            (
                ctypes.c_int64,
                "steps batch input_size projection_size cell_size layer residual threads",
            ),
            (ctypes.c_float, "cell_clip projection_clip epsilon"),
        )
        for name in names.split()
    )


class Rows(NamedTuple):
    """The rows of a batch, sorted by their number of words, most first: words are
    packed step by step.
    """

    size: int  # B
    active: Tensor  # int64 [steps]: how many rows go on at each step
    # int64 [N]: where the state of layer 0 of each word is in the layer states
    places: Tensor
    strides: Tensor  # int64 [N]: from there to the state of the next layer
    # bool [N]: whether a word is read from zero state, behind other words of its row
    begins: Tensor


class PackedLayer:
    """A layer's weights as the kernels read them, and its options."""

    def __init__(
        self, weights: RecurrenceWeights, options: RecurrenceOptions, dtype: torch.dtype
    ) -> None:
        (size, cells), width = weights.projection.shape, weights.input.shape[1]
        self.input_size = width
        self.projection_size = size
        self.cell_size = cells
        self.options = options
        self.padded_input_size = start = _padded(width, _DEPTH)
        step = torch.zeros(
            4, _padded(cells, 32), start + _padded(size, _DEPTH), dtype=dtype
        )
        step[:, :cells, :width] = weights.input.view(4, cells, -1)
        step[:, :cells, start : start + size] = weights.hidden.view(4, cells, -1)
        # S [panels of 16 cells, I + P, 4 gates of 16]; in bfloat16 pairs of its rows
        # lie together
        self.step = _panels(step.view(4, -1, _CELLS, step.shape[2]).transpose(0, 1))
        projection = torch.zeros(
            _padded(size, _COLUMNS), _padded(cells, 32), dtype=dtype
        )
        projection[:size, :cells] = weights.projection
        self.projection = _panels(
            projection.view(-1, 4, _CELLS, projection.shape[1])
        )  # S [panels of columns, C, 64]
        bias = torch.zeros(4, _padded(cells, 32))
        bias[:, :cells] = weights.bias.view(4, cells)
        self.bias = (
            bias.view(4, -1, _CELLS).transpose(0, 1).contiguous()
        )  # [panels of 16 cells, 4 gates of 16]
        # [P] each, or None
        self.norm = [
            None if each is None else each.detach().clone()
            for each in (weights.norm_weight, weights.norm_bias)
        ]


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to


def _panels(weight: Tensor) -> Tensor:
    """[panels, 4, 16, K] → [panels, K, 4, 16], in bfloat16 [panels, K / 32, 4, 16, 16,
    2].
    """
    if weight.dtype == torch.float32:
        return weight.permute(0, 3, 1, 2).contiguous()
    panels, _, _, depth = weight.shape
    return (
        weight.reshape(panels, 4, _CELLS, depth // _DEPTH, _DEPTH // 2, 2)
        .permute(0, 3, 1, 4, 2, 5)
        .contiguous()
    )


class InferenceKernels:
    """The kernels for this processor.

    Args:
        dtype: S.
        tiles: whether bfloat16 products may run on AMX tiles.
        avx512: whether they may use AVX-512; without it they are made for AVX2 alone.

    Raises `KernelBuildError` where they cannot be compiled, or the processor has
    neither AVX-512 nor AVX2.
    """

    def __init__(
        self, dtype: torch.dtype, *, tiles: bool = True, avx512: bool = True
    ) -> None:
        source = SOURCE.with_name("inference.cpp")
        compiler = default_compiler()
        library, _ = load_library(
            source, compiler if avx512 else f"{compiler} -mno-avx512f"
        )
        support = library.support()
        if not support:
            raise KernelBuildError(
                "this processor has neither AVX-512 nor AVX2 with FMA"
            )
        names = {torch.float32: "lstm_float32", torch.bfloat16: "lstm_bfloat16"}
        self.dtype = dtype
        self.on_tiles = support == 2 and tiles and avx512 and dtype == torch.bfloat16
        self.run = getattr(library, names[dtype] + ("_tiles" if self.on_tiles else ""))


@lru_cache
def inference_kernels(dtype: torch.dtype) -> InferenceKernels | None:
    """The kernels for factors in a type; None where there are none."""
    if dtype not in (torch.float32, torch.bfloat16):
        return None
    try:
        return InferenceKernels(dtype)
    except KernelBuildError:
        return None


class LstmInference:
    """A `PreparedEncoder`: the layers' weights are copied, in the type and order in
    which they are multiplied.

    Args:
        layers: weights, in float32 on the CPU, and options of each layer.
        residual: whether the input of every layer but the first is added to its output.
        kernels: what runs a layer; factors of products have its type.
    """

    def __init__(
        self,
        layers: Sequence[tuple[RecurrenceWeights, RecurrenceOptions]],
        *,
        residual: bool,
        kernels: InferenceKernels,
    ) -> None:
        self.residual = residual
        self._kernels = kernels
        with torch.no_grad():
            self._layers = [PackedLayer(*layer, kernels.dtype) for layer in layers]

    def __call__(
        self,
        inputs: Tensor,
        words: SentenceWords,
        layer_states: Tensor,
        *,
        state: EncoderState | None = None,
        carry: bool = False,
        backward: bool,
        threads: int,
    ) -> EncoderState | None:
        """See `PreparedEncoder`; the state of a layer is an `LSTMState`."""
        one_each = carry or state is not None
        first = self._layers[0]
        own_rows, starts = schedule(
            words.lengths, len(words.lengths) if one_each else most_rows(first)
        )
        rows, source = pack_rows(words, own_rows, starts, backward=backward)
        packed = torch.zeros(
            len(source) + SPARE_WORDS,
            first.padded_input_size,
            dtype=self._kernels.dtype,
        )
        packed[: len(source), : inputs.shape[1]] = inputs[source]
        after = []
        for index, layer in enumerate(self._layers):
            if state is None:
                hidden = torch.zeros(rows.size, layer.projection_size)
                cell = torch.zeros(rows.size, layer.cell_size)
            else:
                hidden, cell = (
                    tensor.float()[own_rows.argsort()] for tensor in state.layers[index]
                )
            tensors = (
                packed,
                *rows[1:],
                layer.step,
                layer.projection,
                layer.bias,
                *layer.norm,
                hidden,
                cell,
                layer_states,
            )
            arguments = _Arguments(
                *(None if each is None else each.data_ptr() for each in tensors),
                *(
                    len(rows.active),
                    rows.size,
                    layer.input_size,
                    layer.projection_size,
                    layer.cell_size,
                ),
                *(index + 1, self.residual and index > 0, threads),
                *layer.options[:3],
            )
            if self._kernels.run(ctypes.byref(arguments)):
                raise MemoryError(f"no memory for the states of {rows.size} rows")
            if carry:
                after.append(LSTMState(hidden[own_rows], cell[own_rows]))
        return EncoderState(tuple(after)) if carry else None


def most_rows(layer: PackedLayer) -> int:
    """Rows whose factors stay in the second cache while the panels of a weight pass by."""
    width = layer.step[0].numel() // layer.bias[0].numel()
    return max(64, min(1024, 2**20 // (width * layer.step.itemsize)))


def schedule(lengths: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Which row reads each sentence, and from which step on: rows of nearly the same
    number of words, most first.

    Args:
        lengths: int64 [B].
        most: rows at most; with as many as there are sentences, each has its own.

    Returns:
        row: int64 [B].
        start: int64 [B], the step at which each sentence begins.
    """
    order = lengths.sort(descending=True, stable=True).indices
    if len(order) <= most:
        return order.argsort(), torch.zeros_like(order)
    sizes = lengths.tolist()
    totals = [
        (0, row) for row in range(min(most, max(1, -(-sum(sizes) // max(1, *sizes)))))
    ]
    placed = [(0, 0)] * len(sizes)
    for (
        index
    ) in order.tolist():  # the longest first, each to the row with the fewest words
        total, row = totals[0]
        placed[index] = (row, total)
        heapq.heapreplace(totals, (total + sizes[index], row))
    rank = {
        row: number
        for number, (_, row) in enumerate(
            sorted(totals, key=lambda each: (-each[0], each[1]))
        )
    }
    rows = torch.tensor([rank[row] for row, _ in placed])
    return rows, torch.tensor([start for _, start in placed])


def pack_rows(
    words: SentenceWords, rows: Tensor, starts: Tensor, *, backward: bool
) -> tuple[Rows, Tensor]:
    """The words of scheduled sentences, packed step by step, and int64 [N], of each the
    word of the text.
    """
    lengths = words.lengths
    sentence = torch.repeat_interleave(
        lengths
    )  # [N]: of each word, sentence by sentence
    number = torch.arange(len(sentence)) - (lengths.cumsum(0) - lengths)[sentence]
    step = starts[sentence] + number
    row = rows[sentence]
    active = torch.bincount(step)
    place = (active.cumsum(0) - active)[step] + row
    read = words.first[sentence] + (
        lengths[sentence] - 1 - number if backward else number
    )
    source = torch.empty_like(read).index_copy_(0, place, read)
    begins = torch.zeros(len(read), dtype=torch.bool).index_copy_(
        0, place, (number == 0) & (step > 0)
    )
    count = int(rows.max()) + 1 if len(rows) else 0
    return Rows(
        count, active, words.places[source], words.strides[source], begins
    ), source
