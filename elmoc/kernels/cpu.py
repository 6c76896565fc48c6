"""CPU kernels of an LSTM step: how `cpu.cpp`, compiled on this machine, is called.

ctypes calls it, which releases the interpreter's lock, so that the other direction's
thread can run.
"""

import ctypes
from collections.abc import Iterable
from itertools import chain
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
# The arguments of each kernel: the tensors of its named tuple, tensors of the layer,
# then step, sizes and strides, clips, and threads.
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
        library, compiler = load_library(SOURCE, default_compiler())
        self.description = f"C++ compiled by {compiler}"
        stored = {torch.float32: "float32", torch.bfloat16: "bfloat16"}[dtype]
        self._kernels = {
            name: ctypes.CFUNCTYPE(None, *arguments).in_dll(library, f"{name}_{stored}")
            for name, arguments in SIGNATURES.items()
        }

    def parts(self, streams: int) -> tuple[int, int]:
        # each thread adds up its own
        return torch.get_num_threads(), torch.get_num_threads()

    def gates_forward(
        self, layer: LayerConstants, step: int, tensors: GatesForward
    ) -> None:
        rows, size = tensors.cell.shape
        numbers = [step, rows, size, layer.cell_clip]
        self._run("gates_forward", tensors, [layer.bias, layer.lengths], numbers)

    def output_forward(
        self, layer: LayerConstants, step: int, tensors: OutputForward
    ) -> None:
        constants = [layer.norm_weight, layer.norm_bias, layer.mask, layer.lengths]
        rows, size = tensors.projected.shape
        stride = tensors.hidden.stride(0)
        numbers = [step, rows, size, stride, layer.projection_clip, layer.norm_epsilon]
        self._run("output_forward", tensors, constants, numbers)

    def output_backward(
        self, layer: LayerConstants, step: int, tensors: OutputBackward
    ) -> None:
        constants = [layer.norm_weight, layer.mask, layer.lengths]
        rows, size = tensors.projected.shape
        stride = 0 if tensors.grad_next is None else tensors.grad_next.stride(0)
        numbers = [step, rows, size, stride, layer.projection_clip]
        self._run("output_backward", tensors, constants, numbers)

    def gates_backward(
        self, layer: LayerConstants, step: int, tensors: GatesBackward
    ) -> None:
        rows, size = tensors.cell.shape
        numbers = [step, rows, size, layer.cell_clip]
        self._run("gates_backward", tensors, [layer.lengths], numbers)

    def _run(
        self,
        kernel: str,
        tensors: Iterable[Tensor | None],
        constants: Iterable[Tensor | None],
        numbers: list[float],
    ) -> None:
        # a null pointer says that a tensor is not there
        places = [
            None if each is None else each.data_ptr()
            for each in chain(tensors, constants)
        ]
        self._kernels[kernel](*places, *numbers, torch.get_num_threads())
