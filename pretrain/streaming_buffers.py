"""Where do the rows of the next windows wait, and how do they reach a GPU without anybody waiting for them?

A ring of slots is allocated once. A background thread fills their host buffers, and on a GPU sends these on a stream of
its own to the slot's device buffers; events order the two streams, so that the thread that computes never waits.
"""

from collections.abc import Callable

import torch

from pretrain.batch_tables import Buffers


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
