"""CPU kernels of an LSTM step: how `cpu.cpp`, compiled on this machine, is called.

ctypes calls it, which releases the interpreter's lock, so that the other direction's
thread can run.
"""

import ctypes
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmoc.kernels.compiling import default_compiler, load_library
from elmoc.kernels.lstm_step import (
    GatesBackward,
    GatesForward,
    LayerConstants,
    OutputBackward,
    OutputForward,
)

SOURCE = Path(__file__).with_suffix(".cpp")

POINTER = ctypes.c_void_p
LONG = ctypes.c_int64
FLOAT = ctypes.c_float
INT = ctypes.c_int
# Of each kernel: the tensors of its named tuple, tensors of the layer, then step, sizes
# and clips, and threads.
SIGNATURES: dict[str, list[Any]] = {
    "gates_forward": [POINTER] * 7 + [LONG] * 3 + [FLOAT, INT],
    "gates_backward": [POINTER] * 8 + [LONG] * 3 + [FLOAT, INT],
    "output_forward": [POINTER] * 9 + [LONG] * 4 + [FLOAT, FLOAT, INT],
    "output_backward": [POINTER] * 10 + [LONG] * 4 + [FLOAT, INT],
}


class CompiledKernels:
    """`StepKernels` compiled for this processor; activations are float32 or bfloat16 on
    the CPU.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        loaded, compiler = load_library(SOURCE, default_compiler())
        self.description = f"C++ compiled by {compiler}"
        name = {torch.float32: "float32", torch.bfloat16: "bfloat16"}[dtype]
        (
            self._gates_forward,
            self._gates_backward,
            self._output_forward,
            self._output_backward,
        ) = (
            ctypes.CFUNCTYPE(None, *arguments).in_dll(loaded, f"{kernel}_{name}")
            for kernel, arguments in SIGNATURES.items()
        )

    def parts(self, streams: int) -> tuple[int, int]:
        """One for each thread."""
        return torch.get_num_threads(), torch.get_num_threads()

    def gates_forward(
        self, layer: LayerConstants, step: int, tensors: GatesForward
    ) -> None:
        places = addresses(*tensors, layer.bias, layer.lengths)
        self._gates_forward(
            *places, step, *tensors.cell.shape, layer.cell_clip, torch.get_num_threads()
        )

    def output_forward(
        self, layer: LayerConstants, step: int, tensors: OutputForward
    ) -> None:
        self._output_forward(
            *addresses(
                *tensors, layer.norm_weight, layer.norm_bias, layer.mask, layer.lengths
            ),
            step,
            *tensors.projected.shape,
            tensors.hidden.stride(0),
            layer.projection_clip,
            layer.norm_epsilon,
            torch.get_num_threads(),
        )

    def output_backward(
        self, layer: LayerConstants, step: int, tensors: OutputBackward
    ) -> None:
        self._output_backward(
            *addresses(*tensors, layer.norm_weight, layer.mask, layer.lengths),
            step,
            *tensors.projected.shape,
            0 if tensors.grad_next is None else tensors.grad_next.stride(0),
            layer.projection_clip,
            torch.get_num_threads(),
        )

    def gates_backward(
        self, layer: LayerConstants, step: int, tensors: GatesBackward
    ) -> None:
        places = addresses(*tensors, layer.lengths)
        self._gates_backward(
            *places, step, *tensors.cell.shape, layer.cell_clip, torch.get_num_threads()
        )


def addresses(*tensors: Tensor | None) -> list[int | None]:
    """Where the numbers of tensors are; None for a tensor that is not there."""
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]
