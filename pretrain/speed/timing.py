"""Timing: how long calls take on a device, and how much that varies."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

import torch

from pretrain.step import DirectionThreads

Result = TypeVar("Result")
AT_LEAST = 0.05
"""Seconds that short calls are repeated for."""


def timed(function: Callable[[], Result], device: torch.device) -> tuple[float, Result]:
    """Seconds until `function` and all that it asked of the device is done, and what it returned."""

    def synchronise() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    synchronise()
    started = time.perf_counter()
    result = function()
    synchronise()
    return time.perf_counter() - started, result


def seconds_each(calls: Mapping[str, Callable[[], Any]], runner: DirectionThreads, device: torch.device) -> float:
    """Seconds in which every direction makes its call once, with threads shared as in an update.

    Calls shorter than `AT_LEAST` are repeated until they fill it.
    """

    def seconds_of(times: int) -> float:
        def repeat(direction: str) -> None:
            for _ in range(times):
                calls[direction]()

        return timed(lambda: runner.map(repeat), device)[0] / times

    once = seconds_of(1)
    return once if once >= AT_LEAST else seconds_of(1 + int(AT_LEAST / once))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": median(values), "minimum": min(values), "maximum": max(values)}
