"""How do the word vectors of a batch get to the device without the table ever being there?

For each window the distinct ids are found, and only their rows gathered, by a background thread, ahead of time, into
buffers that are pinned where the device is a GPU. Inputs, targets and both directions share the ids.
"""

import queue
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from elmoc.vector_table import VectorTable
from pretrain.windows import Position, Window

Item = TypeVar("Item")


@dataclass
class Batch:
    """A window with the vectors that it needs.

    input_rows, target_rows  [U, E]: the vectors of the window's distinct ids (float16 or float32)
    rows      for each direction int64 [B, T + 1]: which of those rows each token has
    next      the position after this window
    """

    input_rows: Tensor
    target_rows: Tensor
    rows: dict[str, Tensor]
    next: Position

    def to(self, device: torch.device) -> "Batch":
        """The same on a device; from pinned memory the copies run behind the caller's back."""
        if device.type == "cpu":
            return self
        shared = self.input_rows is self.target_rows
        inputs = self.input_rows.to(device, non_blocking=True)
        return Batch(
            inputs,
            inputs if shared else self.target_rows.to(device, non_blocking=True),
            {name: rows.to(device, non_blocking=True) for name, rows in self.rows.items()},
            self.next,
        )

    def inputs(self, direction: str) -> Tensor:
        """float32 [B, T, E]: what the direction reads."""
        return self.input_rows[self.rows[direction][:, :-1]].float()

    def targets(self, direction: str) -> Tensor:
        """float32 [B, T, E]: the vectors of the words it is to predict."""
        return self.target_rows[self.rows[direction][:, 1:]].float()


def gather(
    ids: dict[str, np.ndarray], inputs: VectorTable, targets: VectorTable, position: Position, pin: bool
) -> Batch:
    """Gather the distinct rows of a window's ids [B, T + 1] for each direction."""
    together = np.concatenate([window.ravel() for window in ids.values()])
    distinct, inverse = np.unique(together, return_inverse=True)
    rows, start = {}, 0
    for name, window in ids.items():
        rows[name] = _tensor(inverse[start : start + window.size].reshape(window.shape), pin)
        start += window.size
    input_rows = _tensor(inputs.rows[distinct], pin)
    same = inputs.path == targets.path
    return Batch(input_rows, input_rows if same else _tensor(targets.rows[distinct], pin), rows, position)


def stream_batches(
    windows: Iterator[Window], inputs: VectorTable, targets: VectorTable, *, pin: bool, ahead: int = 4
) -> Generator[Batch, None, None]:
    """Batches of `windows`, gathered up to `ahead` windows ahead of time."""
    return prefetched((gather(window.ids, inputs, targets, window.next, pin) for window in windows), ahead)


def prefetched(items: Iterator[Item], ahead: int) -> Generator[Item, None, None]:
    """The same items, made by a background thread up to `ahead` of them ahead of time.

    An exception in the thread is raised here. Closing the generator ends the thread.
    """
    ready: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(maxsize=ahead)
    stopped = threading.Event()

    def put(entry: tuple[Item | None, BaseException | None]) -> bool:
        while not stopped.is_set():
            try:
                ready.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((None, None))
        except BaseException as error:
            put((None, error))

    thread = threading.Thread(target=work, name="vector-streaming", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        stopped.set()
        thread.join()


def _tensor(array: np.ndarray, pin: bool) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory() if pin else tensor
