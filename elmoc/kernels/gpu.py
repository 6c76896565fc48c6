"""GPU kernels of an LSTM step: what `cpu.cpp` computes, in Triton.

The tensors come first, in the order of the named tuples of `lstm_step`. Sums over
streams (gradients of biases and norms) are partial sums of groups of streams, each
added to by one program alone: no atomics, so that a run can be repeated bit for bit.
"""

import triton
import triton.language as tl

from elmoc.kernels.lstm_step import (
    GatesBackward,
    GatesForward,
    LayerConstants,
    OutputBackward,
    OutputForward,
)

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


@triton.jit(do_not_specialize=["step"])
def _gates_forward(
    preactivation,
    cell_before,
    gates,
    cell,
    gated_cell,
    bias,
    lengths,
    step,
    size,
    limit,
    PADDED: tl.constexpr,
    CLIP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < size
    at = row * 4 * size + column
    i = tl.sigmoid(_load(preactivation + at, inside) + _load(bias + column, inside))
    f = tl.sigmoid(
        _load(preactivation + at + size, inside) + _load(bias + column + size, inside)
    )
    g = _tanh(
        _load(preactivation + at + 2 * size, inside)
        + _load(bias + column + 2 * size, inside)
    )
    o = tl.sigmoid(
        _load(preactivation + at + 3 * size, inside)
        + _load(bias + column + 3 * size, inside)
    )
    before = tl.load(cell_before + row * size + column, inside, 0.0)
    c = i * g + f * before
    if CLIP:
        c = _clipped(c, limit)
    m = o * _tanh(c)
    if PADDED:
        active = step < tl.load(lengths + row)
        c = tl.where(active, c, before)
        m = tl.where(active, m, 0.0)
        i = tl.where(active, i, 0.0)
        f = tl.where(active, f, 0.0)
        g = tl.where(active, g, 0.0)
        o = tl.where(active, o, 0.0)
    tl.store(cell + row * size + column, c, inside)
    tl.store(gated_cell + row * size + column, m, inside)
    tl.store(gates + at, i, inside)
    tl.store(gates + at + size, f, inside)
    tl.store(gates + at + 2 * size, g, inside)
    tl.store(gates + at + 3 * size, o, inside)


@triton.jit(do_not_specialize=["step"])
def _gates_backward(
    grad_gated_cell,
    cell,
    cell_before,
    gates,
    gated_cell,
    grad_cell,
    grad_bias,
    lengths,
    step,
    rows,
    size,
    limit,
    PADDED: tl.constexpr,
    CLIP: tl.constexpr,
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
        i = _load(gates + at, inside)
        f = _load(gates + at + size, inside)
        g = _load(gates + at + 2 * size, inside)
        o = _load(gates + at + 3 * size, inside)
        c = tl.load(cell + row * size + column, inside, 0.0)
        before = tl.load(cell_before + row * size + column, inside, 0.0)
        dm = _load(grad_gated_cell + row * size + column, inside)
        carried = tl.load(grad_cell + row * size + column, inside, 0.0)
        t = _tanh(c)
        dc = carried + dm * o * (1.0 - t * t)
        if CLIP:
            dc = tl.where((c >= limit) | (c <= -limit), 0.0, dc)
        di = dc * g * i * (1.0 - i)
        df = dc * before * f * (1.0 - f)
        dg = dc * i * (1.0 - g * g)
        do = dm * t * o * (1.0 - o)
        dc = dc * f
        m = o * t
        if PADDED:
            active = step < tl.load(lengths + row)
            m = tl.where(active, m, 0.0)
            dc = tl.where(active, dc, carried)
            di = tl.where(active, di, 0.0)
            df = tl.where(active, df, 0.0)
            dg = tl.where(active, dg, 0.0)
            do = tl.where(active, do, 0.0)
        tl.store(grad_cell + row * size + column, dc, inside)
        tl.store(gated_cell + row * size + column, m, inside)
        tl.store(gates + at, di, inside)
        tl.store(gates + at + size, df, inside)
        tl.store(gates + at + 2 * size, dg, inside)
        tl.store(gates + at + 3 * size, do, inside)
        sum_i += di
        sum_f += df
        sum_g += dg
        sum_o += do
    to = grad_bias + part * 4 * size + column
    tl.store(to, tl.load(to, inside, 0.0) + sum_i, inside)
    tl.store(to + size, tl.load(to + size, inside, 0.0) + sum_f, inside)
    tl.store(to + 2 * size, tl.load(to + 2 * size, inside, 0.0) + sum_g, inside)
    tl.store(to + 3 * size, tl.load(to + 3 * size, inside, 0.0) + sum_o, inside)


@triton.jit(do_not_specialize=["step"])
def _output_forward(
    projected,
    hidden_before,
    hidden,
    moments,
    outputs,
    norm_weight,
    norm_bias,
    mask,
    lengths,
    step,
    size,
    stride,
    limit,
    epsilon,
    PADDED: tl.constexpr,
    CLIP: tl.constexpr,
    NORM: tl.constexpr,
    MASK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < size
    value = _load(projected + row * size + column, inside)
    if CLIP:
        value = _clipped(value, limit)
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
    out = value
    if PADDED:
        active = step < tl.load(lengths + row)
        before = _load(hidden_before + row * stride + column, inside)
        out = tl.where(active, value, 0.0)
        value = tl.where(active, value, before)
    tl.store(hidden + row * stride + column, value, inside)
    tl.store(outputs + row * size + column, out, inside)


@triton.jit(do_not_specialize=["step"])
def _output_backward(
    grad_outputs,
    grad_hidden,
    grad_next,
    projected,
    moments,
    grad_projected,
    grad_norm,
    norm_weight,
    mask,
    lengths,
    step,
    rows,
    size,
    stride,
    limit,
    PADDED: tl.constexpr,
    CLIP: tl.constexpr,
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
        carried = tl.load(grad_hidden + row * size + column, inside, 0.0)
        if NEXT:
            following = _load(grad_next + row * stride + column, inside)
            if PADDED:
                following = tl.where(
                    step + 1 < tl.load(lengths + row), following, carried
                )
            carried = following
            tl.store(grad_hidden + row * size + column, carried, inside)
        grad = tl.load(grad_outputs + row * size + column, inside, 0.0) + carried
        if PADDED:
            grad = tl.where(step < tl.load(lengths + row), grad, 0.0)
        if MASK:
            grad = grad * tl.load(mask + row * size + column, inside, 0.0)
        value = _load(projected + row * size + column, inside)
        if NORM:
            mean = tl.load(moments + 2 * row)
            scale = tl.load(moments + 2 * row + 1)
            kept = _clipped(value, limit) if CLIP else value
            normal = tl.where(inside, (kept - mean) * scale, 0.0)
            sum_weight += grad * normal
            sum_bias += grad
            grad = grad * tl.load(norm_weight + column, inside, 0.0)
            of_mean = tl.sum(grad, 0) / size
            of_scale = tl.sum(grad * normal, 0) / size
            grad = scale * (grad - of_mean - normal * of_scale)
        if CLIP:
            grad = tl.where((value > limit) | (value < -limit), 0.0, grad)
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

    def parts(self, streams: int) -> tuple[int, int]:
        return min(streams, NORM_PARTS), min(streams, BIAS_PARTS)

    def gates_forward(
        self, layer: LayerConstants, step: int, tensors: GatesForward
    ) -> None:
        rows, size = tensors.cell.shape
        _gates_forward[rows, triton.cdiv(size, COLUMNS)](
            *tensors,
            layer.bias,
            layer.lengths,
            step,
            size,
            layer.cell_clip,
            PADDED=layer.lengths is not None,
            CLIP=layer.cell_clip > 0,
            BLOCK=COLUMNS,
        )

    def output_forward(
        self, layer: LayerConstants, step: int, tensors: OutputForward
    ) -> None:
        rows, size = tensors.projected.shape
        _output_forward[(rows,)](
            *tensors,
            layer.norm_weight,
            layer.norm_bias,
            layer.mask,
            layer.lengths,
            step,
            size,
            tensors.hidden.stride(0),
            layer.projection_clip,
            layer.norm_epsilon,
            PADDED=layer.lengths is not None,
            CLIP=layer.projection_clip > 0,
            NORM=layer.norm_weight is not None,
            MASK=layer.mask is not None,
            BLOCK=triton.next_power_of_2(size),
        )

    def output_backward(
        self, layer: LayerConstants, step: int, tensors: OutputBackward
    ) -> None:
        rows, size = tensors.projected.shape
        _output_backward[(len(tensors.grad_norm),)](
            *tensors,
            layer.norm_weight,
            layer.mask,
            layer.lengths,
            step,
            rows,
            size,
            0 if tensors.grad_next is None else tensors.grad_next.stride(0),
            layer.projection_clip,
            PADDED=layer.lengths is not None,
            CLIP=layer.projection_clip > 0,
            NORM=layer.norm_weight is not None,
            MASK=layer.mask is not None,
            NEXT=tensors.grad_next is not None,
            BLOCK=triton.next_power_of_2(size),
        )

    def gates_backward(
        self, layer: LayerConstants, step: int, tensors: GatesBackward
    ) -> None:
        rows, size = tensors.cell.shape
        _gates_backward[len(tensors.grad_bias), triton.cdiv(size, COLUMNS)](
            *tensors,
            layer.lengths,
            step,
            rows,
            size,
            layer.cell_clip,
            PADDED=layer.lengths is not None,
            CLIP=layer.cell_clip > 0,
            BLOCK=COLUMNS,
        )
