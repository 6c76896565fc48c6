"""LSTM inference: a stack of LSTM layers over whole sentences of any length, without
padding, on the CPU.

A batch has rows that read one sentence behind the other, so that nearly all of them end
together, and its words are packed: step t holds only rows that have more than t words.
`kernels/inference.cpp` runs all layers over all steps, and writes the layer states
where they belong.

Letters: B sentences, M words of the text, P projection, C cell, L layers. S is the type
of the factors of matrix products: float32, bfloat16 or int8, where every row of
factors, and every column of a panel, has a scale; sums and states are float32.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from elmoc.devices import CPU
from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.loading import NoKernelsError, load_library

# Cells of a panel of the step's weight, columns of any panel, and depth of a block of a
# panel in bfloat16: the sizes of an AMX tile, and of four vectors of AVX-512.
_CELLS = 16
_COLUMNS = 64
_DEPTH = 32
# The least number that a row in int8 is divided by: rows of zeros stay zeros.
_LEAST = 1e-30


class _Weights(ctypes.Structure):
    """As `Weights` in `inference.cpp`, which describes each."""

    _fields_ = (
        ("step", ctypes.c_void_p),
        ("projection", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("norm_weight", ctypes.c_void_p),
        ("norm_bias", ctypes.c_void_p),
        ("projection_size", ctypes.c_int64),
        ("cell_size", ctypes.c_int64),
        ("cell_clip", ctypes.c_float),
        ("projection_clip", ctypes.c_float),
        ("epsilon", ctypes.c_float),
    )


class _Arguments(ctypes.Structure):
    """As `Arguments` in `inference.cpp`, which describes each."""

    _fields_ = (
        ("weights", ctypes.POINTER(_Weights)),
        ("lengths", ctypes.c_void_p),
        ("states", ctypes.c_void_p),
        ("layer_stride", ctypes.c_int64),
        ("word_stride", ctypes.c_int64),
        ("layers", ctypes.c_int64),
        ("sentences", ctypes.c_int64),
        ("most_rows", ctypes.c_int64),
        ("backward", ctypes.c_int64),
        ("residual", ctypes.c_int64),
        ("threads", ctypes.c_int64),
    )


# Runs all layers; another number than 0 says that memory is lacking.
Kernel = Callable[[Any], int]


class PackedLayer:
    """A layer's weights as the kernels read them, and its options.

    tensors: what `weights` points to.
    weights: for the kernels.
    """

    def __init__(
        self, weights: RecurrenceWeights, options: RecurrenceOptions, dtype: torch.dtype
    ) -> None:
        size, cells = weights.projection.shape
        # cells are the depth of the projection's panels
        padded_cells = _padded(cells, _DEPTH)
        steps = []
        for weight in (weights.input, weights.hidden):
            padding = (0, -weight.shape[1] % _DEPTH, 0, padded_cells - cells)
            gates = F.pad(weight.view(4, cells, -1), padding)
            panels = gates.unflatten(1, (-1, _CELLS)).transpose(0, 1)
            steps.append(_panels(panels, dtype))
        # S [panels of 16 cells, P + P, 4 gates of 16]; in bfloat16 pairs of its rows
        # lie together, in int8 fours
        step = torch.cat(steps, dim=1)
        projection = F.pad(
            weights.projection, (0, padded_cells - cells, 0, -size % _COLUMNS)
        )
        # S [panels of columns, C, 64]
        columns = _panels(projection.unflatten(0, (-1, 4, _CELLS)), dtype)
        bias = torch.zeros(4, padded_cells, dtype=torch.float32, device=CPU)
        bias[:, :cells] = weights.bias.view(4, cells)
        # [panels of 16 cells, 4 gates of 16]
        bias = bias.view(4, -1, _CELLS).transpose(0, 1).contiguous()
        # an empty tensor's null pointer switches layer normalisation off
        nothing = torch.empty(0, device=CPU)
        norm = [
            nothing if each is None else each
            for each in (weights.norm_weight, weights.norm_bias)
        ]
        self.tensors = [step, columns, bias, *norm]
        self.weights = _Weights(
            *[tensor.data_ptr() for tensor in self.tensors],
            projection_size=size,
            cell_size=cells,
            cell_clip=options.cell_clip,
            projection_clip=options.projection_clip,
            epsilon=options.norm_epsilon,
        )


def in_8_bits(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [..., K] as integers within ±127, still in float32, and the scale of each
    row [..., 1], by which they are multiplied.

    Weights that `elmoc pack` stored in int8 become the stored integers.
    """
    largest = rows.abs().amax(dim=-1, keepdim=True)
    integers = (rows * (127 / largest.clamp(min=_LEAST))).round()
    return integers, largest / 127


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to


def _panels(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """float32 [panels, 4, 16, K] → S [panels, K, 4, 16], in bfloat16 [panels, K / 32,
    4, 16, 16, 2]; in int8 [panels, K / 4, 4, 16, 4], and as many bytes as of a K of 32
    that begin with the scales of its columns.
    """
    if dtype == torch.float32:
        return weight.permute(0, 3, 1, 2).contiguous()
    if dtype == torch.bfloat16:
        blocks = weight.to(dtype).unflatten(3, (-1, _DEPTH // 2, 2))
        return blocks.permute(0, 3, 1, 4, 2, 5).contiguous()
    integers, scales = in_8_bits(weight)
    fours = integers.to(dtype).unflatten(3, (-1, 4)).permute(0, 3, 1, 2, 4)
    # what sums begin with, where kernels make the numbers of factors 128 larger
    corrections = -128 * integers.sum(dim=3).int()
    both = torch.stack([scales.squeeze(3).view(torch.int32), corrections], dim=1)
    # [panels, bytes]
    ends = both.flatten(1).view(torch.int8)
    return torch.cat(
        [fours.flatten(1), F.pad(ends, (0, _DEPTH * _COLUMNS - ends.shape[1]))], dim=1
    )


@lru_cache
def inference_kernels(
    dtype: torch.dtype, *, highest: str | None = None
) -> Kernel | None:
    """What runs layers with factors in float32, bfloat16 or int8; None where it is
    not compiled, or the processor has neither AVX-512 nor AVX2 with FMA.

    Args:
        dtype: S.
        highest: as in `load_library`.
    """
    try:
        library = load_library("inference", highest)
    except NoKernelsError:
        return None
    support = library.support()
    if not support:
        return None
    # 1: AVX-512 or AVX2; 2: AMX tiles, too
    tiles = "_tiles" if support == 2 else ""
    names = {
        torch.float32: "lstm_float32",
        torch.bfloat16: f"lstm_bfloat16{tiles}",
        torch.int8: f"lstm_int8{tiles}",
    }
    return getattr(library, names[dtype])


class LstmInference:
    """A `PreparedEncoder`: the layers' weights are copied, in the type and order in
    which they are multiplied.

    Args:
        layers: weights, in float32 on the CPU, and options of each layer.
        residual: whether the input of every layer but the first is added to its output.
        dtype: S.
        run: runs the layers, see `inference_kernels`.

    most_rows: that are read at once.
    """

    def __init__(
        self,
        layers: Sequence[tuple[RecurrenceWeights, RecurrenceOptions]],
        *,
        residual: bool,
        dtype: torch.dtype,
        run: Kernel,
    ) -> None:
        self._residual = residual
        self._run = run
        with torch.no_grad():
            self._layers = [PackedLayer(*layer, dtype) for layer in layers]
        self._weights = (_Weights * len(layers))(*[one.weights for one in self._layers])
        # The number of rows whose factors stay in the second cache while the panels of
        # a weight pass by.
        depth = 2 * _padded(layers[0][0].projection.shape[0], _DEPTH)
        self.most_rows = max(64, min(1024, 2**20 // (depth * dtype.itemsize)))

    def __call__(
        self,
        layer_states: Tensor,
        lengths: Tensor,
        *,
        backward: bool,
        threads: int,
    ) -> None:
        """See `PreparedEncoder`."""
        arguments = _Arguments(
            weights=self._weights,
            lengths=lengths.data_ptr(),
            states=layer_states.data_ptr(),
            layer_stride=layer_states.stride(0),
            word_stride=layer_states.stride(1),
            layers=len(self._layers),
            sentences=len(lengths),
            most_rows=self.most_rows,
            backward=backward,
            residual=self._residual,
            threads=threads,
        )
        if self._run(ctypes.byref(arguments)):
            raise MemoryError(f"no memory for the states of {len(lengths)} sentences")
