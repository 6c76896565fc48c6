"""CUDA graphs: an update whose kernels are recorded once and then launched together.

A CUDA graph records the kernels of one update of a direction (forward, backward, clipping, optimiser) and launches all
of them at once. What goes in has to lie where it lay while recording: it is copied there first.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from elmoc.encoders import EncoderState

Argument = TypeVar("Argument")
Result = TypeVar("Result")
# records what a function does; returns how to do it again, and the result, which each repetition overwrites
Record = Callable[[Callable[[], Result]], tuple[Callable[[], None], Result]]

# updates before recording: libraries allocate what they need, and the optimiser its state
WARM_UP = 3
# updates that take longer than those after them: the last of them records
UNTIL_RECORDED = WARM_UP + 1


class CudaGraphStep(Generic[Argument, Result]):
    """A function of tensors, recorded once it has run a few times.

    Its result holds until the next call. The function must not look at values on the host, and after the first calls
    the shapes of its inputs never change.
    """

    def __init__(self, function: Callable[[Argument], Result], record: Record[Result]) -> None:
        self._function = function
        self._record = record
        self._calls = 0
        self._places: list[Tensor] = []  # where the tensors of its inputs lay while recording

    def __call__(self, inputs: Argument) -> Result:
        """The function's result."""
        self._calls += 1
        if self._calls <= WARM_UP:
            return self._function(inputs)
        if not self._places:
            own = map_tensors(self._place, inputs)
            self._again, self._result = self._record(lambda: self._function(own))
        places = iter(self._places)
        map_tensors(lambda tensor: next(places).copy_(tensor), inputs)
        self._again()
        return self._result

    def _place(self, tensor: Tensor) -> Tensor:
        self._places.append(tensor.clone())
        return self._places[-1]


def map_tensors(fn: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The same named tuple or list with `fn` of every tensor in it; other values stay as they are."""
    if isinstance(value, Tensor):
        return fn(value)
    if isinstance(value, EncoderState):
        return value.map(fn)
    if isinstance(value, tuple | list):
        each = [map_tensors(fn, part) for part in value]
        return each if isinstance(value, list) else type(value)(*each)
    return value


def record_cuda_graph(function: Callable[[], Result]) -> tuple[Callable[[], None], Result]:
    """A `Record`: nothing is computed while recording.

    Other threads may go on calling CUDA meanwhile, as the one that streams vectors does.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = function()
    return graph.replay, result
