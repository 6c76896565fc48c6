"""The loader: batches on the device, each with the vectors of its words alone.

A background thread gathers what each window needs, ahead of time, into a ring of buffers. Letters: B streams, T time,
A words ahead, D directions.
"""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from itertools import chain
from typing import TypeVar

import numpy as np
import torch

from pretrain.data.batches import Batch, Buffers, Tables
from pretrain.data.windows import Position, Window

Item = TypeVar("Item")
BATCHES_AHEAD = 2
"""Windows that are made batches of while another is computed with."""
WINDOWS_AHEAD = 64
"""Windows of ids that are read ahead, so that nothing waits while the sentences of the next shards are shuffled."""


def gather(ids: dict[str, np.ndarray], tables: Tables, device: torch.device) -> Batch:
    """A batch of its own on the device, from a window's ids [B, T + A] for each direction."""
    return gather_window(Window(ids, Position()), tables, device)


def gather_window(window: Window, tables: Tables, device: torch.device) -> Batch:
    """A batch of its own on the device."""
    (slot,) = ring(1, device, lambda where, pin: tables.buffers(shape_of(window.ids), where, pin))
    count = tables.fill(window, slot.host)
    slot.send(count)
    slot.receive()
    return tables.batch(window, slot.buffers, count)


def stream_batches(
    windows: Iterator[Window], tables: Tables, device: torch.device, *, ahead: int = BATCHES_AHEAD
) -> Generator[Batch, None, None]:
    """Batches of `windows` on the device, made up to `ahead` windows ahead of time.

    A batch is valid until the next one is asked for, and what has been asked of the GPU by then is computed with it;
    after that its buffers are used again.
    """
    first = next(windows, None)
    if first is None:
        return
    shape = shape_of(first.ids)
    slots = ring(slots_for(ahead), device, lambda where, pin: tables.buffers(shape, where, pin))

    def filled(coming: Iterator[Window]) -> Iterator[tuple[Slot, Batch]]:
        if device.type == "cuda":  # in this thread the current one is GPU 0 until then, and would be put to use
            torch.cuda.set_device(slots[0].buffers.ids.device)
        for number, window in enumerate(chain([first], coming)):
            slot = slots[number % len(slots)]
            slot.wait()
            count = tables.fill(window, slot.host)
            slot.send(count)
            yield slot, tables.batch(window, slot.buffers, count)

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


def slots_for(ahead: int) -> int:
    """How many slots it takes to make batches so many windows ahead.

    One is being used, `ahead` wait in the queue, and one is being filled: since the queue holds no more, whoever takes
    a batch out has released the one before, and that is the next slot to be filled.
    """
    return ahead + 2


def ring_bytes(tables: Tables, shape: tuple[int, ...]) -> int:
    """Bytes of the buffers that stream batches of windows of `shape` [D, B, T + A], on the device.

    Where that is a GPU, as many are pinned in main memory.
    """
    return slots_for(BATCHES_AHEAD) * tables.buffers(shape, torch.device("meta"), False).nbytes


def shape_of(ids: dict[str, np.ndarray]) -> tuple[int, ...]:
    """[D, B, T + A] of a window's ids for each direction."""
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
