"""GPU kernels of an LSTM step: what `cpu.cpp` computes, in Triton.

The tensors come first, in the order of the named tuples of `lstm_step`. Sums over
streams (gradients of biases and norms) are partial sums of groups of streams, each
added to by one program alone: no atomics, so that a run can be repeated bit for bit.
"""

import math

import triton
import triton.language as tl

from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.lstm_step import (
    GatesBackward,
    GatesForward,
    OutputBackward,
    OutputForward,
    StepTensors,
)
from elmoc.kernels.matmul import put_weight_gradient

COLUMNS = 256  # cells that one program handles at a time
# The most groups of streams, for the gradients of the norm and of the bias.
NORM_PARTS = 256
BIAS_PARTS = 32


@triton.jit
def _load(place, inside):
    return tl.load(place, inside, 0.0).to(tl.float32)


@triton.jit
def _tanh(x):
    # inexact near zero, as in cpu.cpp, which says why the absolute error is all that
    # counts
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _clipped(x, limit):
    x = tl.where(x > limit, limit, x)  # NaN stays NaN
    return tl.where(x < -limit, -limit, x)


@triton.jit
def _load_gates(place, size, inside):
    return (
        _load(place, inside),
        _load(place + size, inside),
        _load(place + 2 * size, inside),
        _load(place + 3 * size, inside),
    )


@triton.jit
def _store_gates(place, size, inside, i, f, g, o):
    tl.store(place, i, inside)
    tl.store(place + size, f, inside)
    tl.store(place + 2 * size, g, inside)
    tl.store(place + 3 * size, o, inside)


@triton.jit
def _gates_forward(
    preactivation,
    cell_before,
    gates,
    cell,
    gated_cell,
    bias,
    norm_weight,
    norm_bias,
    mask,
    rows,
    size,
    stride,
    cell_limit,
    projection_limit,
    epsilon,
    NORM: tl.constexpr,
    MASK: tl.constexpr,
    NEXT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    at = row * 4 * size + column
    x_i, x_f, x_g, x_o = _load_gates(preactivation + at, size, inside)
    b_i, b_f, b_g, b_o = _load_gates(bias + column, size, inside)
    i = tl.sigmoid(x_i + b_i)
    f = tl.sigmoid(x_f + b_f)
    g = _tanh(x_g + b_g)
    o = tl.sigmoid(x_o + b_o)
    before = tl.load(cell_before + row * size + column, inside, 0.0)
    c = _clipped(i * g + f * before, cell_limit)
    m = o * _tanh(c)
    tl.store(cell + row * size + column, c, inside)
    tl.store(gated_cell + row * size + column, m, inside)
    _store_gates(gates + at, size, inside, i, f, g, o)


@triton.jit
def _gates_backward(
    grad_gated_cell,
    cell,
    cell_before,
    gates,
    gated_cell,
    grad_cell,
    grad_bias,
    bias,
    norm_weight,
    norm_bias,
    mask,
    rows,
    size,
    stride,
    cell_limit,
    projection_limit,
    epsilon,
    NORM: tl.constexpr,
    MASK: tl.constexpr,
    NEXT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    part = tl.program_id(0)
    parts = tl.num_programs(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    sum_i = tl.zeros((BLOCK,), tl.float32)
    sum_f = tl.zeros((BLOCK,), tl.float32)
    sum_g = tl.zeros((BLOCK,), tl.float32)
    sum_o = tl.zeros((BLOCK,), tl.float32)
    for number in range(part, rows, parts):
        row = tl.cast(number, tl.int64)
        at = row * 4 * size + column
        i, f, g, o = _load_gates(gates + at, size, inside)
        c = tl.load(cell + row * size + column, inside, 0.0)
        before = tl.load(cell_before + row * size + column, inside, 0.0)
        dm = _load(grad_gated_cell + row * size + column, inside)
        carried = tl.load(grad_cell + row * size + column, inside, 0.0)
        t = _tanh(c)
        dc = carried + dm * o * (1.0 - t * t)
        dc = tl.where((c >= cell_limit) | (c <= -cell_limit), 0.0, dc)
        di = dc * g * i * (1.0 - i)
        df = dc * before * f * (1.0 - f)
        dg = dc * i * (1.0 - g * g)
        do = dm * t * o * (1.0 - o)
        dc = dc * f
        m = o * t
        tl.store(grad_cell + row * size + column, dc, inside)
        tl.store(gated_cell + row * size + column, m, inside)
        _store_gates(gates + at, size, inside, di, df, dg, do)
        sum_i += di
        sum_f += df
        sum_g += dg
        sum_o += do
    to = grad_bias + part * 4 * size + column
    i, f, g, o = _load_gates(to, size, inside)
    _store_gates(to, size, inside, i + sum_i, f + sum_f, g + sum_g, o + sum_o)


@triton.jit
def _output_forward(
    projected,
    outputs,
    hidden,
    moments,
    bias,
    norm_weight,
    norm_bias,
    mask,
    rows,
    size,
    stride,
    cell_limit,
    projection_limit,
    epsilon,
    NORM: tl.constexpr,
    MASK: tl.constexpr,
    NEXT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < size
    value = _load(projected + row * size + column, inside)
    value = _clipped(value, projection_limit)
    if NORM:
        mean = tl.sum(value, 0) / size
        centred = tl.where(inside, value - mean, 0.0)
        scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / size + epsilon)
        tl.store(moments + 2 * row, mean)
        tl.store(moments + 2 * row + 1, scale)
        value = centred * scale * tl.load(norm_weight + column, inside, 0.0) + tl.load(
            norm_bias + column, inside, 0.0
        )
    if MASK:
        value = value * tl.load(mask + row * size + column, inside, 0.0)
    tl.store(hidden + row * stride + column, value, inside)
    tl.store(outputs + row * size + column, value, inside)


@triton.jit
def _output_backward(
    grad_outputs,
    grad_hidden,
    grad_next,
    projected,
    moments,
    grad_projected,
    grad_norm,
    bias,
    norm_weight,
    norm_bias,
    mask,
    rows,
    size,
    stride,
    cell_limit,
    projection_limit,
    epsilon,
    NORM: tl.constexpr,
    MASK: tl.constexpr,
    NEXT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    part = tl.program_id(0)
    parts = tl.num_programs(0)
    column = tl.arange(0, BLOCK)
    inside = column < size
    sum_weight = tl.zeros((BLOCK,), tl.float32)
    sum_bias = tl.zeros((BLOCK,), tl.float32)
    for number in range(part, rows, parts):
        row = tl.cast(number, tl.int64)
        if NEXT:
            carried = _load(grad_next + row * stride + column, inside)
        else:
            carried = tl.load(grad_hidden + row * size + column, inside, 0.0)
        grad = tl.load(grad_outputs + row * size + column, inside, 0.0) + carried
        if MASK:
            grad = grad * tl.load(mask + row * size + column, inside, 0.0)
        value = _load(projected + row * size + column, inside)
        if NORM:
            mean = tl.load(moments + 2 * row)
            scale = tl.load(moments + 2 * row + 1)
            kept = _clipped(value, projection_limit)
            normal = tl.where(inside, (kept - mean) * scale, 0.0)
            sum_weight += grad * normal
            sum_bias += grad
            grad = grad * tl.load(norm_weight + column, inside, 0.0)
            of_mean = tl.sum(grad, 0) / size
            of_scale = tl.sum(grad * normal, 0) / size
            grad = scale * (grad - of_mean - normal * of_scale)
        outside = (value > projection_limit) | (value < -projection_limit)
        grad = tl.where(outside, 0.0, grad)
        tl.store(grad_projected + row * size + column, grad, inside)
    if NORM:
        to = grad_norm + part * 2 * size + column
        tl.store(to, tl.load(to, inside, 0.0) + sum_weight, inside)
        tl.store(to + size, tl.load(to + size, inside, 0.0) + sum_bias, inside)


class TritonKernels:
    """`StepKernels` on a GPU; weights are float32, activations float32, bfloat16 or
    float16.
    """

    description = "Triton"
    put_weight_gradient = staticmethod(put_weight_gradient)

    def parts(self, streams: int) -> tuple[int, int]:
        return min(streams, NORM_PARTS), min(streams, BIAS_PARTS)

    def run(
        self,
        weights: RecurrenceWeights,
        options: RecurrenceOptions,
        tensors: StepTensors,
    ) -> None:
        rows, size = tensors[1].shape
        is_forward = isinstance(tensors, GatesForward | OutputForward)
        # backward, a program for each partial sum, which are the last tensor
        programs = rows if is_forward else len(tensors[-1])
        block = triton.next_power_of_2(size)
        if isinstance(tensors, GatesForward | GatesBackward):
            block = COLUMNS
        _KERNELS[type(tensors)][programs, triton.cdiv(size, block)](
            *tensors,
            weights.bias,
            weights.norm_weight,
            weights.norm_bias,
            options.dropout_mask,
            rows,
            size,
            0 if tensors[2] is None else tensors[2].stride(0),
            options.cell_clip or math.inf,
            options.projection_clip or math.inf,
            options.norm_epsilon,
            NORM=weights.norm_weight is not None,
            MASK=options.dropout_mask is not None,
            NEXT=tensors[2] is not None,
            BLOCK=block,
        )


_KERNELS = {
    GatesForward: _gates_forward,
    OutputForward: _output_forward,
    OutputBackward: _output_backward,
    GatesBackward: _gates_backward,
}
