"""Kernels of inference: an LSTM layer over all steps of a packed batch, as `inference.cpp` computes it on the CPU.

Letters: B rows, N words of all rows together, I the width of what a layer reads, P projection, C cell. S is the type of
the factors of matrix products, float32 or bfloat16; sums and states are float32.
"""

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from elmoc.kernels.compiling import KernelBuildError, default_compiler
from elmoc.kernels.cpu import addresses, load

SOURCE = Path(__file__).with_suffix(".cpp")
SPARE_WORDS = 32  # rows that the kernels may read behind the last word of what a layer reads

# Of a panel of the step's weight, of any panel, and of a block of a panel in bfloat16.
_CELLS, _COLUMNS, _DEPTH = 16, 64, 32


class _Arguments(ctypes.Structure):
    """As `Arguments` in `inference.cpp`, which says what each is."""

    _fields_ = tuple(
        (name, kind)
        for kind, names in (
            (ctypes.c_void_p, "inputs active places strides begins step_weight projection bias"),
            (ctypes.c_void_p, "norm_weight norm_bias hidden cell outputs"),
            (ctypes.c_int64, "steps batch input_size projection_size cell_size layer residual threads"),
            (ctypes.c_float, "cell_clip projection_clip epsilon"),
        )
        for name in names.split()
    )


class Rows(NamedTuple):
    """The rows of a batch, sorted by their number of words, most first: words are packed step by step."""

    size: int  # B
    active: Tensor  # int64 [steps]: how many rows go on at each step
    places: Tensor  # int64 [N]: where the state of layer 0 of each word is in the layer states
    strides: Tensor  # int64 [N]: from there to that of the next layer
    begins: Tensor  # bool [N]: whether a word is read from zero state, behind other words of its row


@dataclass(frozen=True)
class PackedLayer:
    """A layer's weights as the kernels read them."""

    step: Tensor  # S [panels of 16 cells, I + P, 4 gates of 16]; in bfloat16 pairs of its rows lie together
    projection: Tensor  # S [panels of 64 columns, C, 64]
    bias: Tensor  # [panels of 16 cells, 4 gates of 16]
    norm_weight: Tensor | None  # [P]
    norm_bias: Tensor | None  # [P]
    input_size: int
    projection_size: int
    cell_size: int
    cell_clip: float
    projection_clip: float
    epsilon: float

    @property
    def padded_input_size(self) -> int:
        """The width of a row of what the layer reads; the last numbers are zero."""
        return _padded(self.input_size, _DEPTH)


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to


def pack_step(input_weight: Tensor, hidden_weight: Tensor, dtype: torch.dtype) -> Tensor:
    """W_x [4C, I] and W_h [4C, P] in panels."""
    cells, width = len(input_weight) // 4, input_weight.shape[1]
    start = _padded(width, _DEPTH)
    both = torch.zeros(4, _padded(cells, 32), start + _padded(hidden_weight.shape[1], _DEPTH), dtype=dtype)
    both[:, :cells, :width] = input_weight.view(4, cells, -1)
    both[:, :cells, start : start + hidden_weight.shape[1]] = hidden_weight.view(4, cells, -1)
    return _panels(both.view(4, -1, _CELLS, both.shape[2]).transpose(0, 1))


def pack_projection(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """W_p [P, C] in panels."""
    padded = torch.zeros(_padded(len(weight), _COLUMNS), _padded(weight.shape[1], 32), dtype=dtype)
    padded[: len(weight), : weight.shape[1]] = weight
    return _panels(padded.view(-1, 4, _CELLS, padded.shape[1]))


def pack_bias(bias: Tensor) -> Tensor:
    """[4C] in panels."""
    cells = len(bias) // 4
    padded = torch.zeros(4, _padded(cells, 32))
    padded[:, :cells] = bias.view(4, cells)
    return padded.view(4, -1, _CELLS).transpose(0, 1).contiguous()


def _panels(weight: Tensor) -> Tensor:
    """[panels, 4, 16, K] → [panels, K, 4, 16], in bfloat16 [panels, K / 32, 4, 16, 16, 2]."""
    if weight.dtype == torch.float32:
        return weight.permute(0, 3, 1, 2).contiguous()
    panels, _, _, depth = weight.shape
    return weight.reshape(panels, 4, _CELLS, depth // _DEPTH, _DEPTH // 2, 2).permute(0, 3, 1, 4, 2, 5).contiguous()


class InferenceKernels:
    """The kernels for this processor.

    Args:
        dtype: S.
        tiles: whether bfloat16 products may run on AMX tiles.
        avx512: whether they may use AVX-512; without it they are those of a processor that has AVX2 alone.

    Raises `KernelBuildError` where they cannot be compiled, or the processor has neither AVX-512 nor AVX2.
    """

    def __init__(self, dtype: torch.dtype, *, tiles: bool = True, avx512: bool = True) -> None:
        library, self.description = load(default_compiler() + ("" if avx512 else " -mno-avx512f"), SOURCE)
        support = library.support()
        if not support:
            raise KernelBuildError("this processor has neither AVX-512 nor AVX2 with FMA")
        names = {torch.float32: "lstm_float32", torch.bfloat16: "lstm_bfloat16"}
        self.dtype = dtype
        self.on_tiles = support == 2 and tiles and avx512 and dtype == torch.bfloat16
        self._run = getattr(library, names[dtype] + ("_tiles" if self.on_tiles else ""))
        self._has_threads = bool(library.has_threads())

    def run(
        self,
        layer: PackedLayer,
        rows: Rows,
        inputs: Tensor,
        state: tuple[Tensor, Tensor],
        layer_states: Tensor,
        *,
        index: int,
        residual: bool,
        threads: int,
    ) -> None:
        """Run a layer over whole rows.

        Args:
            layer, rows: its weights, and the batch.
            inputs: S [N + 32, padded I], what the layer reads, step by step; replaced by its output if I = P.
            state: hidden [B, P] and cell [B, C], replaced by those after the last word of each row.
            layer_states: float32, contiguous: those of all words.
            index: of the layer in them, from 1 on.
            residual: whether the states of the layer below are added to the output.
            threads: that take part.
        """
        arguments = _Arguments(
            *addresses(inputs, *rows[1:], layer.step, layer.projection, layer.bias),
            *addresses(layer.norm_weight, layer.norm_bias, *state, layer_states),
            *(len(rows.active), rows.size, layer.input_size, layer.projection_size, layer.cell_size),
            *(index, residual, threads if self._has_threads else 1),
            *(layer.cell_clip, layer.projection_clip, layer.epsilon),
        )
        if self._run(ctypes.byref(arguments)):
            raise MemoryError(f"no memory for the states of {rows.size} rows")


@lru_cache
def inference_kernels(dtype: torch.dtype) -> InferenceKernels | None:
    """The kernels for factors in a type; None where there are none."""
    if dtype not in (torch.float32, torch.bfloat16):
        return None
    try:
        return InferenceKernels(dtype)
    except KernelBuildError:
        return None
