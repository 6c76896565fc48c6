"""How do the word vectors of a batch get to the device without the table ever being there?

For each window the distinct ids are found, and only their rows gathered, by a background thread, ahead of time, into a
ring of buffers (see `Slot`). Inputs, targets and both directions share the rows.
"""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from elmoc.word_vectors.table import VectorTable
from pretrain.data.tables import Buffers, StreamedTables, Tables
from pretrain.data.windows import Position, Window

Item = TypeVar("Item")
WINDOWS_AHEAD = 64
"""So many windows of ids are read ahead, so that nobody waits while the sentences of the next shards are shuffled."""


@dataclass
class Batch:
    """A window with the vectors that it needs.

    input_rows, target_rows  [U, E]: vectors in the tables' dtype: those of the window's distinct ids, or whole tables
    rows      for each direction int64 [B, T + 1]: which of those vectors each token has
    next      the position after this window
    """

    input_rows: Tensor
    target_rows: Tensor
    rows: dict[str, Tensor]
    next: Position

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        if device.type == "cpu":
            return self
        inputs = self.input_rows.to(device)
        targets = inputs if self.input_rows is self.target_rows else self.target_rows.to(device)
        return Batch(inputs, targets, {name: rows.to(device) for name, rows in self.rows.items()}, self.next)

    def inputs(self, direction: str) -> Tensor:
        """float32 [B, T, E]: what the direction reads."""
        return self.input_rows[self.rows[direction][:, :-1]].float()

    def targets(self, direction: str) -> Tensor:
        """float32 [B, T, E]: the vectors of the words it is to predict."""
        return self.target_rows[self.rows[direction][:, 1:]].float()


def gather(ids: dict[str, np.ndarray], inputs: VectorTable, targets: VectorTable, position: Position) -> Batch:
    """A batch of its own in main memory: the distinct rows of a window's ids [B, T + 1] for each direction."""
    tables = StreamedTables(inputs, targets)
    buffers = tables.buffers(shape_of(ids), torch.device("cpu"), False)
    return batch_of(tables, ids, buffers, tables.fill(ids, buffers), position)


def stream_batches(
    windows: Iterator[Window], tables: Tables, device: torch.device, *, ahead: int = 2
) -> Generator[Batch, None, None]:
    """Batches of `windows` on the device, made up to `ahead` windows ahead of time.

    A batch is valid until the next one is asked for, and what has been asked of the GPU by then is computed with it;
    after that its buffers are used again.
    """
    first = next(windows, None)
    if first is None:
        return
    shape = shape_of(first.ids)
    # one slot is being used, `ahead` wait in the queue, and one is being filled: since the queue holds no more, whoever
    # takes a batch out has released the one before, and that is the next slot to be filled
    slots = ring(ahead + 2, device, lambda where, pin: tables.buffers(shape, where, pin))

    def filled(coming: Iterator[Window]) -> Iterator[tuple[Slot, Batch]]:
        for number, window in enumerate(chain([first], coming)):
            slot = slots[number % len(slots)]
            slot.wait()
            count = tables.fill(window.ids, slot.host)
            slot.send(count)
            yield slot, batch_of(tables, window.ids, slot.buffers, count, window.next)

    try:
        with (
            closing(prefetched(windows, WINDOWS_AHEAD)) as coming,
            closing(prefetched(filled(coming), ahead)) as ready,
        ):
            for slot, batch in ready:
                slot.receive()
                yield batch
                slot.release()
    finally:
        for slot in slots:
            slot.wait()  # its memory may be given away now


class Slot:
    """The buffers of one window in main memory; a batch on the CPU is read from where it was gathered.

    The background thread calls `wait`, fills `host`, and calls `send`; the thread that computes calls `receive` before
    it uses `buffers`, and `release` after. A slot must be released before it is filled again: the bounded queue
    between the threads sees to that.
    """

    def __init__(self, host: Buffers) -> None:
        self.host = host
        self.buffers = host

    def wait(self) -> None:
        """Wait until `host` may be written again."""

    def send(self, count: int) -> None:
        """Have the rows and the first `count` vectors of `host` go where they are used."""

    def receive(self) -> None:
        """Let what is computed from now on find the window in `buffers`."""

    def release(self) -> None:
        """Let `buffers` be overwritten once what has been asked for so far is computed."""


class DeviceSlot(Slot):
    """Pinned buffers and their twins on a GPU, with the copies between them on the stream `side`.

    To be made, received and released on the stream that computes; other streams that read the buffers have to be
    joined with it before. `wait` looks at an event, so a CUDA graph captured meanwhile in another thread needs
    `capture_error_mode="thread_local"`.
    """

    def __init__(self, host: Buffers, device: Buffers, side: torch.cuda.Stream) -> None:
        super().__init__(host)
        self.buffers = device
        self.side = side
        self.copied = torch.cuda.Event(blocking=True)  # a thread that waits sleeps
        self.released = torch.cuda.Event()
        self.release()  # the memory may have been another tensor's that is still being read

    def wait(self) -> None:
        self.copied.synchronize()

    def send(self, count: int) -> None:
        with torch.cuda.stream(self.side):
            self.side.wait_event(self.released)
            self.buffers.copy_(self.host, count)
            self.copied.record(self.side)

    def receive(self) -> None:
        torch.cuda.current_stream(self.buffers.rows.device).wait_event(self.copied)

    def release(self) -> None:
        self.released.record(torch.cuda.current_stream(self.buffers.rows.device))


def ring(size: int, device: torch.device, buffers: Callable[[torch.device, bool], Buffers]) -> list[Slot]:
    """So many slots for `device`; `buffers(device, pin)` allocates."""
    cpu = torch.device("cpu")
    if device.type == "cpu":
        return [Slot(buffers(cpu, False)) for _ in range(size)]
    side = torch.cuda.Stream(device)
    return [DeviceSlot(buffers(cpu, True), buffers(device, False), side) for _ in range(size)]


def batch_of(tables: Tables, ids: dict[str, np.ndarray], buffers: Buffers, count: int, position: Position) -> Batch:
    """The batch in filled buffers."""
    return Batch(*tables.vectors(buffers, count), dict(zip(ids, buffers.rows, strict=True)), position)


def shape_of(ids: dict[str, np.ndarray]) -> tuple[int, ...]:
    """[D, B, T + 1] of a window's ids for each direction."""
    return (len(ids), *next(iter(ids.values())).shape)


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
