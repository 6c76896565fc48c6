"""Which library call multiplies two matrices fastest here?

In float32 on an x86 CPU PyTorch's own products go to MKL, which on some processors (AMD's) runs at a third of what
oneDNN reaches with weights in its own blocked order. Those two oneDNN operators are not public: where a release lacks
them, and for every other device and type, it is `torch.mm`.
"""

import platform
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

Product = Callable[[Tensor, Tensor], Tensor]
"""(x [n, K], out [n, N]) → x Wᵀ, in `out` where the library can write there, else in a tensor of its own."""


def product_with(weight: Tensor) -> Product:
    """The product with a weight W [N, K], of which the caller lets the contents stand while it is in use."""
    if uses_onednn(weight):
        packed = torch.ops.mkldnn._reorder_linear_weight(weight)
        return lambda x, out: _linear(x, packed)
    transposed = weight.t()
    return lambda x, out: torch.mm(x, transposed, out=out)


def product_with_transpose(weight: Tensor) -> Product:
    """The product with Wᵀ, for a weight W [K, N]: x [n, K] → x W [n, N]."""
    if uses_onednn(weight):
        # copying first is twice as fast as letting oneDNN reorder a transposed view
        return product_with(weight.t().contiguous())
    return lambda x, out: torch.mm(x, weight, out=out)


def transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """leftᵀ right, [M, N] from [n, M] and [n, N]: the gradient of a weight over all rows at once.

    Its memory may be in either order.
    """
    if uses_onednn(left):
        return _linear(right.t().contiguous(), left.t()).t()  # the one order of the two that oneDNN is fast in
    return torch.mm(left.t(), right)


def uses_onednn(weight: Tensor) -> bool:
    """Whether products with this matrix go to oneDNN's own operators."""
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and _onednn_is_there()


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return product


@lru_cache(maxsize=1)
def _onednn_is_there() -> bool:
    return (
        platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()
        and all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
    )
