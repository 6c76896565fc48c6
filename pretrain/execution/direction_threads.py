"""How do two directions share the cores of a CPU?

The products of one time step are small, so that a second core adds little to one direction; two directions, each on
its own half of the cores, keep all of them busy. Each direction is a model of its own, so nothing else changes.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")


class DirectionThreads:
    """Runs a function for every direction: side by side on the CPU where there are cores for it, else in turn."""

    def __init__(self, directions: Sequence[str], device: torch.device) -> None:
        self.directions = directions
        threads = torch.get_num_threads() // max(1, len(directions))
        self._pool = None
        if device.type == "cpu" and len(directions) > 1 and threads >= 1:
            self._pool = ThreadPoolExecutor(
                len(directions), "direction", initializer=lambda: torch.set_num_threads(threads)
            )

    def map(self, function: Callable[[str], Result]) -> dict[str, Result]:
        """The result for each direction; an exception of any of them is raised."""
        if self._pool is None:
            return {direction: function(direction) for direction in self.directions}
        futures = {direction: self._pool.submit(function, direction) for direction in self.directions}
        return {direction: future.result() for direction, future in futures.items()}

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
