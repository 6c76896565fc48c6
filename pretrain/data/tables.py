"""From which tables do a batch's vectors come: from some in main memory, row by row, or from some on the device?

Both kinds fill buffers with a window, and say which vectors the buffers then speak of.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elmoc.errors import InputError
from elmoc.files import human_bytes
from elmoc.word_vectors.table import VectorTable


@dataclass
class Buffers:
    """Room for the vectors that a window needs.

    rows    int64 [D, B, T + 1]: for each direction, which of the vectors each token has
    inputs, targets   [U, E]: vectors of the input and of the target table, the same tensor where the table is the same
    """

    rows: Tensor
    inputs: Tensor
    targets: Tensor

    def copy_(self, other: "Buffers", count: int) -> None:
        """Take over the rows, and the first `count` vectors; from pinned memory this only asks for the copies."""
        copy(self.rows, other.rows)
        copy(self.inputs[:count], other.inputs[:count])
        if self.targets is not self.inputs:
            copy(self.targets[:count], other.targets[:count])


def copy(to: Tensor, source: Tensor) -> None:
    """Copy on the current stream, behind the caller's back where the memory allows it."""
    to.copy_(source, non_blocking=True)


class StreamedTables:
    """Tables that stay in main memory: a batch has the rows of its distinct ids."""

    def __init__(self, inputs: VectorTable, targets: VectorTable) -> None:
        self.inputs, self.targets = as_tensors(inputs, targets)

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        """Room for windows of `shape` [D, B, T + 1]: as many rows as one can have, however long the tables are."""
        count = min(math.prod(shape), len(self.inputs))

        def empty(*sizes: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(sizes, dtype=dtype, device=device, pin_memory=pin)

        inputs = targets = empty(count, self.inputs.shape[1], dtype=self.inputs.dtype)
        if self.targets is not self.inputs:
            targets = empty(count, self.targets.shape[1], dtype=self.targets.dtype)
        return Buffers(empty(*shape, dtype=torch.int64), inputs, targets)

    def fill(self, ids: dict[str, np.ndarray], buffers: Buffers) -> int:
        """Gather the distinct rows of a window's ids [B, T + 1] for each direction; returns how many they are."""
        together = np.concatenate([window.ravel() for window in ids.values()])
        distinct, inverse = np.unique(together, return_inverse=True)
        buffers.rows.view(-1).copy_(torch.from_numpy(inverse))
        index = torch.from_numpy(distinct.astype(np.int64))
        torch.index_select(self.inputs, 0, index, out=buffers.inputs[: len(index)])
        if self.targets is not self.inputs:
            torch.index_select(self.targets, 0, index, out=buffers.targets[: len(index)])
        return len(index)

    def vectors(self, buffers: Buffers, count: int) -> tuple[Tensor, Tensor]:
        """The input and the target vectors that `buffers.rows` speaks of."""
        inputs = buffers.inputs[:count]
        return inputs, inputs if self.targets is self.inputs else buffers.targets[:count]


class ResidentTables:
    """The same where the tables are on the device as a whole: ids are row numbers, and nothing else is sent.

    On the CPU they stay memory-mapped.
    """

    def __init__(self, inputs: VectorTable, targets: VectorTable, device: torch.device) -> None:
        on_cpu = as_tensors(inputs, targets)
        self.inputs = on_cpu[0].to(device)
        self.targets = self.inputs if on_cpu[1] is on_cpu[0] else on_cpu[1].to(device)

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        """Room for the ids of windows of `shape` [D, B, T + 1], and for no vectors."""
        nothing = torch.empty(0, 0, device=device)
        return Buffers(torch.empty(shape, dtype=torch.int64, device=device, pin_memory=pin), nothing, nothing)

    def fill(self, ids: dict[str, np.ndarray], buffers: Buffers) -> int:
        """Copy a window's ids [B, T + 1] for each direction; no rows are gathered."""
        rows = buffers.rows.numpy()
        for place, window in enumerate(ids.values()):
            rows[place] = window
        return 0

    def vectors(self, buffers: Buffers, count: int) -> tuple[Tensor, Tensor]:
        """The input and the target table."""
        return self.inputs, self.targets


Tables = StreamedTables | ResidentTables


def open_tables(inputs: VectorTable, targets: VectorTable, device: torch.device, *, on_device: bool) -> Tables:
    """The tables where batches take their vectors from: streamed to the device, or on it as a whole."""
    return ResidentTables(inputs, targets, device) if on_device else StreamedTables(inputs, targets)


def require_device_memory(inputs: VectorTable, targets: VectorTable, device: torch.device) -> None:
    """Raise an `InputError` when the tables do not fit into the free memory of a GPU."""
    if device.type == "cpu":
        return
    needed = sum({table.path: table.rows.nbytes for table in (inputs, targets)}.values())
    free, _ = torch.cuda.mem_get_info(device)
    if needed > free:
        raise InputError(
            f"data.tables_on_device is true, but the vector tables need {human_bytes(needed)} and {device} has "
            f"{human_bytes(free)} free: set it to false, and their rows are streamed"
        )


def as_tensors(inputs: VectorTable, targets: VectorTable) -> tuple[Tensor, Tensor]:
    """[V, E] each: the memory-mapped rows, which nobody may write to; one tensor where both tables are the same."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        rows = torch.from_numpy(inputs.rows)
        return rows, rows if inputs.path == targets.path else torch.from_numpy(targets.rows)
