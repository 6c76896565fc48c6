"""The loader: batches on the device, each with the vectors of its words alone.

For each window the distinct ids are found, and only their rows gathered, by a background thread, ahead of time, into a
ring of buffers. Inputs, targets and both directions share the rows. Letters: B streams, T time, E word-vector width, V
lexicon size, D directions, U distinct ids of a window.
"""

import math
import queue
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from elmoc.word_vectors.table import VectorTable
from pretrain.data.windows import Position, Window
from pretrain.output_layers import Targets

Item = TypeVar("Item")
WINDOWS_AHEAD = 64
"""Windows of ids that are read ahead, so that nothing waits while the sentences of the next shards are shuffled."""


@dataclass
class Batch:
    """A window with the vectors that it needs.

    ids       for each direction int64 [B, T + 1]: the row of each token in the lexicon
    rows      for each direction int64 [B, T + 1]: the row of each token in the vectors
    input_vectors, target_vectors  [U, E]: in the tables' dtype, those of the window's distinct ids, or whole tables;
              no target vectors where no output layer reads them
    next      the position after this window
    """

    ids: dict[str, Tensor]
    rows: dict[str, Tensor]
    input_vectors: Tensor
    target_vectors: Tensor | None
    next: Position

    def inputs(self, direction: str) -> Tensor:
        """float32 [B, T, E]: what the direction reads."""
        return self.input_vectors[self.rows[direction][:, :-1]].float()

    def targets(self, direction: str) -> Targets:
        """The words [B, T] that the direction is to predict."""
        vectors = None
        if self.target_vectors is not None:
            vectors = self.target_vectors[self.rows[direction][:, 1:]].float()  # [B, T, E]
        return Targets(self.ids[direction][:, 1:], vectors)


@dataclass
class Buffers:
    """Room for what a window needs.

    ids, rows   int64 [D, B, T + 1]: rows in the lexicon, and in the vectors; the same tensor where these are the same
    vectors     [U, E] of each table
    """

    ids: Tensor
    rows: Tensor
    vectors: list[Tensor]

    def copy_(self, other: "Buffers", count: int) -> None:
        """Take over ids, rows and the first `count` vectors; from pinned memory the copies are only started."""
        start_copy(self.ids, other.ids)
        if self.rows is not self.ids:
            start_copy(self.rows, other.rows)
        for own, others in zip(self.vectors, other.vectors, strict=True):
            start_copy(own[:count], others[:count])


def start_copy(to: Tensor, source: Tensor) -> None:
    """Copy on the current stream, without waiting for it where the memory is pinned."""
    to.copy_(source, non_blocking=True)


class Tables(ABC):
    """The tables that batches take their vectors from: that of the inputs, and that of the targets.

    There is one where both are the same, or `targets` is None, since no output layer reads target vectors.
    """

    def __init__(self, inputs: VectorTable, targets: VectorTable | None) -> None:
        tables = [inputs] if targets is None or targets.path == inputs.path else [inputs, targets]
        self.has_targets = targets is not None
        with warnings.catch_warnings():  # the rows are memory-mapped, and nobody may write to them
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            self.tables = [torch.from_numpy(table.rows) for table in tables]  # [V, E] each

    @abstractmethod
    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        """Room for windows of `shape` [D, B, T + 1]."""

    @abstractmethod
    def fill(self, ids: dict[str, np.ndarray], buffers: Buffers) -> int:
        """Put the ids [B, T + 1] of a window for each direction, and their vectors, into buffers; returns how many."""

    @abstractmethod
    def vectors(self, buffers: Buffers, count: int) -> list[Tensor]:
        """The vectors of each table that `buffers.rows` are rows of."""

    def batch(self, ids: dict[str, np.ndarray], buffers: Buffers, count: int, position: Position) -> Batch:
        """The batch in filled buffers."""
        vectors = self.vectors(buffers, count)
        token_ids, rows = (dict(zip(ids, each, strict=True)) for each in (buffers.ids, buffers.rows))
        return Batch(token_ids, rows, vectors[0], vectors[-1] if self.has_targets else None, position)


class StreamedTables(Tables):
    """Tables that stay in main memory: a batch has the rows of its distinct ids."""

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        count = min(math.prod(shape), len(self.tables[0]))  # the most rows that a window can have

        def empty(*sizes: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(sizes, dtype=dtype, device=device, pin_memory=pin)

        vectors = [empty(count, table.shape[1], dtype=table.dtype) for table in self.tables]
        return Buffers(empty(*shape, dtype=torch.int64), empty(*shape, dtype=torch.int64), vectors)

    def fill(self, ids: dict[str, np.ndarray], buffers: Buffers) -> int:
        together = np.stack(list(ids.values()))  # [D, B, T + 1]
        buffers.ids.numpy()[...] = together
        distinct, inverse = np.unique(together, return_inverse=True)
        buffers.rows.view(-1).copy_(torch.from_numpy(inverse.ravel()))
        index = torch.from_numpy(distinct.astype(np.int64))
        for table, vectors in zip(self.tables, buffers.vectors, strict=True):
            torch.index_select(table, 0, index, out=vectors[: len(index)])
        return len(index)

    def vectors(self, buffers: Buffers, count: int) -> list[Tensor]:
        return [vectors[:count] for vectors in buffers.vectors]


class ResidentTables(Tables):
    """Tables that are on the device as a whole: ids are their rows, and nothing else is sent.

    On the CPU they stay memory-mapped.
    """

    def __init__(self, inputs: VectorTable, targets: VectorTable | None, device: torch.device) -> None:
        super().__init__(inputs, targets)
        self.tables = [table.to(device) for table in self.tables]

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        ids = torch.empty(shape, dtype=torch.int64, device=device, pin_memory=pin)
        return Buffers(ids, ids, [])

    def fill(self, ids: dict[str, np.ndarray], buffers: Buffers) -> int:
        np.stack(list(ids.values()), out=buffers.ids.numpy(), casting="unsafe")
        return 0

    def vectors(self, buffers: Buffers, count: int) -> list[Tensor]:
        return self.tables


def gather(ids: dict[str, np.ndarray], tables: Tables, device: torch.device) -> Batch:
    """A batch of its own on the device, from a window's ids [B, T + 1] for each direction."""
    (slot,) = ring(1, device, lambda where, pin: tables.buffers(shape_of(ids), where, pin))
    count = tables.fill(ids, slot.host)
    slot.send(count)
    slot.receive()
    return tables.batch(ids, slot.buffers, count, Position())


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
            yield slot, tables.batch(window.ids, slot.buffers, count, window.next)

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
    """The slots of a ring for `device`; `buffers(device, pin)` allocates."""
    cpu = torch.device("cpu")
    if device.type == "cpu":
        return [Slot(buffers(cpu, False)) for _ in range(size)]
    side = torch.cuda.Stream(device)
    return [DeviceSlot(buffers(cpu, True), buffers(device, False), side) for _ in range(size)]


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
