"""Matrix multiplication: the fastest library call for each of the three of a linear
layer y = x Wᵀ.

On an x86 CPU a weight that is multiplied by in every step is worth putting into
oneDNN's own blocked order. In float32 that matters most: PyTorch's own `mm` goes to
MKL, which on some processors (AMD's) runs at a third of oneDNN's rate. Those two oneDNN
operators are not public: a release that lacks them, and every other device and type,
has `torch.mm`.
"""

import platform
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import torch
from torch import Tensor

# (x, out) → x times a prepared matrix, in `out` where the library can write there, else
# in a new tensor.
Matmul = Callable[[Tensor, Tensor], Tensor]


def prepare_linear(weight: Tensor) -> Matmul:
    """x [n, K] → x Wᵀ [n, N] for a weight W [N, K], whose contents must not change
    while it is in use.
    """
    if uses_onednn(weight):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight)
        return lambda x, out: _linear(x, packed)
    transposed = weight.t()
    return lambda x, out: torch.mm(x, transposed, out=out)


def prepare_input_gradient(weight: Tensor) -> Matmul:
    """The gradient of a linear layer's input: g [n, N] → g W [n, K] for a weight W [N,
    K], which must not change.
    """
    if weight.device.type == "cpu":
        # rows of Wᵀ lie in the faster order; oneDNN takes twice as long to reorder a
        # view
        copied = weight.t().contiguous()
        if weight.dtype == torch.float32:
            return prepare_linear(copied)
        # in bf16 the packing would take the time that it saves
        weight = copied.t()
    return lambda x, out: torch.mm(x, weight, out=out)


def put_weight_gradient(grad: Tensor, inputs: Tensor, outs: list[Tensor]) -> None:
    """The gradient of a linear layer's weight: gᵀ x [N, K] from g [n, N] and x [n, K],
    all rows at once.

    Args:
        grad: g.
        inputs: x.
        outs: parts of the columns of gᵀ x, in order, which are written.
    """
    if grad.dtype == torch.float32 and uses_onednn(grad):
        # of the two orders, oneDNN is fast in this one alone
        product = _linear(inputs.t().contiguous(), grad.t()).t()
    else:
        product = torch.mm(grad.t(), inputs)
    parts = product.split([out.shape[1] for out in outs], dim=1)
    for out, part in zip(outs, parts, strict=True):
        # row by row: `Tensor.to` takes three times as long for a part of each row
        out.copy_(part)


def uses_onednn(matrix: Tensor) -> bool:
    """Whether multiplications by this matrix go to oneDNN's own operators."""
    return matrix.device.type == "cpu" and matrix.dtype in _onednn_types()


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


@lru_cache(maxsize=1)
def _onednn_types() -> tuple[torch.dtype, ...]:
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    if not is_x86 or not torch.backends.mkldnn.is_available():
        return ()
    types = []
    for dtype in (torch.float32, torch.bfloat16):
        ones = torch.ones(2, 2, dtype=dtype, device="cpu")
        # no other way shows that a release has the operators, and takes these arguments
        # on this processor
        with suppress(AttributeError, RuntimeError):
            packed = torch.ops.mkldnn._reorder_linear_weight(ones)
            if torch.equal(_linear(ones, packed), ones @ ones):
                types.append(dtype)
    return tuple(types)
