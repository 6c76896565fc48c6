"""CPU kernels of an LSTM step: how the library of `cpu.cpp` is called.

ctypes calls it, which releases the interpreter's lock, so that the other direction's
thread can run.
"""

import ctypes
import math
from itertools import chain
from typing import Any

import torch

from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.loading import load_library
from elmoc.kernels.lstm_step import KERNELS, StepTensors
from elmoc.kernels.matmul import put_weight_gradient

# The types of `LAYER_ARGUMENTS` in the source: four tensors of the layer; rows, size
# and stride; two clips and an epsilon; threads.
_LAYER_ARGUMENTS = (
    [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3 + [ctypes.c_float] * 3 + [ctypes.c_int]
)
# Those of `weight_gradient`: four tensors, four sizes, threads.
_WEIGHT_GRADIENT_ARGUMENTS = (
    [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 4 + [ctypes.c_int]
)


class CompiledKernels:
    """`StepKernels` in C++; activations are float32 or bfloat16 on
    the CPU.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        library = load_library("cpu")
        self.description = "C++"
        stored = {torch.float32: "float32", torch.bfloat16: "bfloat16"}[dtype]
        self._kernels: dict[type[StepTensors], Any] = {}
        for kind, name in KERNELS.items():
            types = [ctypes.c_void_p] * len(kind._fields) + _LAYER_ARGUMENTS
            form = ctypes.CFUNCTYPE(None, *types)
            self._kernels[kind] = form.in_dll(library, f"{name}_{stored}")
        form = ctypes.CFUNCTYPE(ctypes.c_bool, *_WEIGHT_GRADIENT_ARGUMENTS)
        self._weight_gradient: Any = form.in_dll(library, f"weight_gradient_{stored}")

    def parts(self, streams: int) -> tuple[int, int]:
        # each thread adds up partial sums of its own
        return torch.get_num_threads(), torch.get_num_threads()

    def run(
        self,
        weights: RecurrenceWeights,
        options: RecurrenceOptions,
        tensors: StepTensors,
    ) -> None:
        layer = (
            weights.bias,
            weights.norm_weight,
            weights.norm_bias,
            options.dropout_mask,
        )
        # a null pointer says that a tensor is not there
        pointers = [
            None if each is None else each.data_ptr() for each in chain(tensors, layer)
        ]
        # which tensors have the sizes, `lstm_step` says
        rows, size = tensors[1].shape
        self._kernels[type(tensors)](
            *pointers,
            rows,
            size,
            0 if tensors[2] is None else tensors[2].stride(0),
            options.cell_clip or math.inf,
            options.projection_clip or math.inf,
            options.norm_epsilon,
            torch.get_num_threads(),
        )

    def put_weight_gradient(
        self, grad: torch.Tensor, inputs: torch.Tensor, outs: list[torch.Tensor]
    ) -> None:
        """See `matmul.put_weight_gradient`, which runs where the library has nothing
        faster for the type and the processor. There are one or two parts, in float32.
        """
        if not len(grad) or not self._weight_gradient(
            grad.data_ptr(),
            inputs.data_ptr(),
            outs[0].data_ptr(),
            outs[-1].data_ptr(),
            *grad.shape,
            inputs.shape[1],
            outs[0].shape[1],
            torch.get_num_threads(),
        ):
            put_weight_gradient(grad, inputs, outs)
