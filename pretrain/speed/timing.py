"""How long does something take on a device, and how much does that vary?"""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

import torch

from pretrain.execution.direction_threads import DirectionThreads

Result = TypeVar("Result")
AT_LEAST = 0.05
"""Seconds that short calls are repeated for."""


def synchronise(device: torch.device) -> None:
    """Wait until the device has done all that was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(function: Callable[[], Result], device: torch.device) -> tuple[float, Result]:
    """Seconds until `function` and all that it asked of the device is done, and what it returned."""
    synchronise(device)
    started = time.perf_counter()
    result = function()
    synchronise(device)
    return time.perf_counter() - started, result


def seconds_each(calls: Mapping[str, Callable[[], Any]], runner: DirectionThreads, device: torch.device) -> float:
    """Seconds in which every direction makes its call once, with threads shared as in an update.

    Calls shorter than `AT_LEAST` are repeated until they fill it.
    """

    def repeat(times: int) -> None:
        runner.map(lambda direction: call_repeatedly(calls[direction], times))

    once = timed(lambda: repeat(1), device)[0]
    if once >= AT_LEAST:
        return once
    times = 1 + int(AT_LEAST / once)
    return timed(lambda: repeat(times), device)[0] / times


def call_repeatedly(call: Callable[[], Any], times: int) -> None:
    """Call it so many times."""
    for _ in range(times):
        call()


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": median(values), "minimum": min(values), "maximum": max(values)}
