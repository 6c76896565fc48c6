"""How fast does this machine multiply matrices at best?"""

from contextlib import closing
from functools import partial

import torch

from elmoc.kernels.matmul import prepare_linear
from elmoc.progress import progress_bar
from pretrain.execution.direction_threads import DirectionThreads
from pretrain.speed.timing import seconds_each

SIZES = {"cpu": (1024, 2048, 4096), "cuda": (4096, 8192, 16384)}
REPEATS = 3


def matrix_rate(device: torch.device, dtype: torch.dtype, directions: tuple[str, ...]) -> float:
    """Operations a second: the best of large square products.

    Both by PyTorch's own product and by that of the fused recurrence, one on all threads and one a direction side by
    side.
    """
    best = 0.0
    for size in progress_bar(iterable=SIZES[device.type], desc=f"matrix rate {dtype}", leave=False):
        left, right = torch.randn(2, size, size, device=device).to(dtype).unbind()
        prepared = prepare_linear(right)
        for places in {directions[:1], directions}:
            for calls in (
                {place: partial(torch.mm, left, right) for place in places},
                {place: partial(prepared, left, torch.empty_like(left)) for place in places},
            ):
                with closing(DirectionThreads(places, device)) as runner:
                    seconds = min(seconds_each(calls, runner, device) for _ in range(REPEATS))
                best = max(best, 2 * size**3 * len(places) / seconds)
    return best
