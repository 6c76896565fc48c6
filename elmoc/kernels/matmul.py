"""Which library call multiplies two matrices fastest here?

On an x86 CPU a weight that is multiplied by in every step is worth putting into oneDNN's own blocked order. In float32
that matters most: PyTorch's own products go to MKL, which on some processors (AMD's) runs at a third of oneDNN's rate.
Those two oneDNN operators are not public: where a release lacks them, and for every other device and type, it is
`torch.mm`.
"""

import platform
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import torch
from torch import Tensor

Product = Callable[[Tensor, Tensor], Tensor]
"""(x [n, K], out [n, N]) → x Wᵀ, in `out` where the library can write there, else in a tensor of its own."""


def product_with(weight: Tensor) -> Product:
    """The product with a weight W [N, K], of which the caller lets the contents stand while it is in use."""
    if onednn_multiplies(weight):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight)
        return lambda x, out: _linear(x, packed)
    transposed = weight.t()
    return lambda x, out: torch.mm(x, transposed, out=out)


def product_with_transpose(weight: Tensor) -> Product:
    """The product with Wᵀ, for a weight W [K, N]: x [n, K] → x W [n, N]."""
    if weight.device.type != "cpu":
        return lambda x, out: torch.mm(x, weight, out=out)
    copied = weight.t().contiguous()  # the faster order; oneDNN takes twice as long to reorder a view
    if weight.dtype == torch.float32:
        return product_with(copied)
    return lambda x, out: torch.mm(x, copied.t(), out=out)  # packing this one, too, takes what it saves


def transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ right, [M, N] from [n, M] and [n, N]: the gradient of a weight over all rows at once.

    Its memory may be in either order.
    """
    if left.dtype == torch.float32 and onednn_multiplies(left):
        return _linear(right.t().contiguous(), left.t()).t()  # the one order of the two that oneDNN is fast in
    return torch.mm(left.t(), right)


def onednn_multiplies(weight: Tensor) -> bool:
    """Whether products with this matrix go to oneDNN's own operators."""
    return weight.device.type == "cpu" and weight.dtype in _onednn_types()


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return product


@lru_cache(maxsize=1)
def _onednn_types() -> tuple[torch.dtype, ...]:
    if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
        return ()
    types = []
    for dtype in (torch.float32, torch.bfloat16):
        ones = torch.ones(2, 2, dtype=dtype)
        # no other way shows that a release has the operators, and takes these arguments on this processor
        with suppress(AttributeError, RuntimeError):
            if torch.equal(_linear(ones, torch.ops.mkldnn._reorder_linear_weight(ones)), ones @ ones):
                types.append(dtype)
    return tuple(types)
