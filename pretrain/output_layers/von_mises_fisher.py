"""The von Mises–Fisher distribution: how likely is a direction, if directions scatter
around the predicted one?

    p(w | ŷ) = C_m(κ) exp(ŷ · w),  κ = ‖ŷ‖, ‖w‖ = 1,  C_m(κ) = κ^v / ((2π)^{m/2}
    I_v(κ)),  v = m/2 − 1

for vectors of m numbers (Kumar and Tsvetkov 2019). Orders v of hundreds make I_v(κ)
overflow or vanish, so log C is computed as a whole, in float64 and without leaving the
device.
"""

import math

import torch
from torch import Tensor

# From this order on the expansion is exact to about 1e-9; lower orders are reached by
# recurrence.
LEAST_ORDER = 32


def log_partition(squared: Tensor, size: int) -> Tensor:
    """log(C_m(0)/C_m(κ)) from κ², float64 of any shape, and m: log of the mean of exp(ŷ
    · w) over all directions w.

    That is log(I_v(κ) κ^−v) less its limit at κ = 0: from the uniform expansion of a
    large order, then down to v by I_{v−1}(κ) − I_{v+1}(κ) = 2v I_v(κ)/κ. All steps are
    smooth in κ², so that autograd's derivative is as exact.
    """
    order = size / 2 - 1
    lifted = order + max(0, math.ceil(LEAST_ORDER - order))
    root, rest = _by_expansion(squared, lifted)
    next_root, next_rest = _by_expansion(squared, lifted + 1)
    # root − v, without the cancellation of a small κ
    value = squared / (root + lifted) + rest
    # next_root − root − 1, without the cancellation of a large κ
    change = (2 * lifted + 1) / (root + next_root) - 1
    ratio = torch.exp(change + next_rest - rest) / (2 * (lifted + 1))
    while lifted > order:
        lifted -= 1
        ratio = 1 / (2 * (lifted + 1) + squared * ratio)
        value = value - torch.log(2 * (lifted + 1) * ratio)
    return value


def _by_expansion(squared: Tensor, order: float) -> tuple[Tensor, Tensor]:
    """r = √(v² + κ²), and b, where log(I_v(κ) κ^−v) less its limit at κ = 0 is r − v +
    b, for a large order v.

    Abramowitz and Stegun (1964), 9.7.7 and 9.3.9. b grows as log κ alone, so that
    differences of it are exact.
    """
    root = torch.sqrt(order**2 + squared)
    more = squared / (root + order)  # r − v
    at_zero = _series(torch.ones_like(root), order)
    series = torch.log(_series(order / root, order) / at_zero)
    exponent = order * torch.log1p(more / (2 * order))
    return root, series - exponent - torch.log1p(more / order) / 2


def _series(t: Tensor, order: float) -> Tensor:
    """1 + u₁(t)/v + … + u₄(t)/v⁴."""
    s = t * t
    u1 = t * (3 - 5 * s) / 24
    u2 = s * (81 + s * (-462 + s * 385)) / 1152
    u3 = s * t * (30375 + s * (-369603 + s * (765765 - s * 425425))) / 414720
    inner = 349922430 + s * (-446185740 + s * 185910725)
    u4 = s * s * (4465125 + s * (-94121676 + s * inner)) / 39813120
    return 1 + (u1 + (u2 + (u3 + u4 / order) / order) / order) / order
