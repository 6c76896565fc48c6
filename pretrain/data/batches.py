"""Batches: how do the vectors of a window's words get to the device, ahead of time?

Of each window the distinct ids are found and only their rows of the vector tables
gathered; inputs, targets, candidates and both directions share them. A background
thread does so for windows to come, in a ring of buffers.
Letters: B streams, T time, E word-vector width, V lexicon size, D directions, U
candidates, n distinct ids of a window, K the most candidates of any window.
"""

import math
import sys
import warnings
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from pretrain.data.candidates import CandidateSampler
from pretrain.data.windows import Position, Window
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Candidates, Targets

Item = TypeVar("Item")
# Batches that are made while another is computed with.
BATCHES_AHEAD = 3
# Windows of ids that are read ahead, so that nothing waits while the sentences of the
# next shards are shuffled.
WINDOWS_AHEAD = 64


@dataclass
class Batch:
    """A window with the vectors that it needs, on the device.

    token_ids    for each direction int64 [B, T + 1]: the row of each token in the
    lexicon vector_rows  for each direction int64 [B, T + 1]: the row of each token in
    the vectors input_vectors, target_vectors  [n, E]: in the tables' dtype; no target
    vectors where no output layer reads them candidates   for each direction, where an
    output layer asks for them; their `ids` are rows of the target vectors,
                 where there are any
    next         the position after this window
    """

    token_ids: dict[str, Tensor]
    vector_rows: dict[str, Tensor]
    input_vectors: Tensor
    target_vectors: Tensor | None
    candidates: dict[str, Candidates]
    next: Position

    def inputs(self, direction: str) -> Tensor:
        """float32 [B, T, E]: what the direction reads."""
        return self.input_vectors[self.vector_rows[direction][:, :-1]].float()

    def distinct_inputs(self, direction: str) -> tuple[Tensor, Tensor]:
        """The distinct rows that the direction reads, [n', E] in the table's dtype, and
        the index of each [B, T].
        """
        rows, index = torch.unique(
            self.vector_rows[direction][:, :-1], return_inverse=True
        )
        return self.input_vectors[rows], index

    def targets(self, direction: str) -> Targets:
        """The words [B, T] that the direction is to predict, with candidates or their
        own vectors [B, T, E].
        """
        ids = self.token_ids[direction][:, 1:]
        vectors = self.target_vectors
        candidates = self.candidates.get(direction)
        if vectors is None:
            return Targets(ids, None, candidates)
        if candidates is None:
            return Targets(ids, vectors[self.vector_rows[direction][:, 1:]].float())
        return Targets(
            ids,
            None,
            candidates._replace(vectors=vectors[candidates.ids].float(), ids=None),
        )


@dataclass
class Buffers:
    """Room for what a window needs, in main memory or on a device; K is 0 where no
    output layer asks for candidates.

    token_ids, vector_rows  int64 [D, B, T + 1]
    vectors                 [most n, E] of each table
    candidate_rows          int64 [D, K]
    labels                  int64 [D, B, T]
    log_shares              float32 [D, 2, K]
    """

    token_ids: Tensor
    vector_rows: Tensor
    vectors: list[Tensor]
    candidate_rows: Tensor
    labels: Tensor
    log_shares: Tensor

    def filled(self, count: int) -> list[Tensor]:
        """What holds a window with `count` distinct ids."""
        vectors = [each[:count] for each in self.vectors]
        return [
            self.token_ids,
            self.vector_rows,
            *vectors,
            self.candidate_rows,
            self.labels,
            self.log_shares,
        ]

    def copy_(self, other: "Buffers", count: int) -> None:
        """Take over a window with `count` distinct ids; from pinned memory the copies
        are only started.
        """
        for own, others in zip(self.filled(count), other.filled(count), strict=True):
            own.copy_(others, non_blocking=True)


class BatchMaker:
    """Gathers what windows need from the vector tables, which stay memory-mapped, and
    makes batches of it.

    Args:
        inputs, targets: the tables [V, E]; one may be both. None: no output layer reads
            target vectors.
        sampler: of the candidates, where windows have any.
    """

    def __init__(
        self,
        inputs: LexiconTable,
        targets: LexiconTable | None,
        *,
        sampler: CandidateSampler | None = None,
    ) -> None:
        tables = (
            [inputs]
            if targets is None or targets.path == inputs.path
            else [inputs, targets]
        )
        self.has_targets = targets is not None
        self.sampler = sampler
        with (
            warnings.catch_warnings()
        ):  # the rows are memory-mapped, and nobody may write to them
            warnings.filterwarnings(
                "ignore", message="The given NumPy array is not writable"
            )
            self.tables = [
                torch.from_numpy(table.rows) for table in tables
            ]  # [V, E] each

    def buffers(
        self, shape: tuple[int, int, int], device: torch.device, *, pin: bool = False
    ) -> Buffers:
        """Room for windows of `shape` [D, B, T + 1]."""
        directions, streams, tokens = shape
        most = 0 if self.sampler is None else self.sampler.most
        distinct = math.prod(shape) + (directions * most if self.has_targets else 0)
        distinct = min(distinct, len(self.tables[0]))

        def empty(*sizes: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.empty(sizes, dtype=dtype, device=device, pin_memory=pin)

        return Buffers(
            token_ids=empty(*shape),
            vector_rows=empty(*shape),
            vectors=[
                empty(distinct, table.shape[1], dtype=table.dtype)
                for table in self.tables
            ],
            candidate_rows=empty(directions, most),
            labels=empty(directions, streams, tokens - 1 if most else 0),
            log_shares=empty(directions, 2, most, dtype=torch.float32),
        )

    def fill(self, window: Window, buffers: Buffers) -> int:
        """Put a window's ids, the vectors of its distinct ids, and its candidates into
        buffers in main memory.

        Returns the number of distinct ids.
        """
        together = np.stack(list(window.ids.values()))  # [D, B, T + 1]
        buffers.token_ids.numpy()[...] = together
        candidates = [each.ids for each in window.candidates.values()]
        parts = [together.ravel(), *(candidates if self.has_targets else ())]
        distinct, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        rows = np.split(inverse, np.cumsum([len(part) for part in parts])[:-1])
        buffers.vector_rows.view(-1).copy_(torch.from_numpy(rows[0]))
        index = torch.from_numpy(distinct.astype(np.int64))
        for table, vectors in zip(self.tables, buffers.vectors, strict=True):
            torch.index_select(table, 0, index, out=vectors[: len(index)])
        if self.sampler is not None:
            self._fill_candidates(
                window,
                buffers,
                rows[1:] if self.has_targets else candidates,
                self.sampler,
            )
        return len(index)

    def _fill_candidates(
        self,
        window: Window,
        buffers: Buffers,
        rows: list[np.ndarray],
        sampler: CandidateSampler,
    ) -> None:
        """Put a window's candidates into buffers; `rows` [U] are each direction's rows
        of the vectors, or ids.
        """
        for index, (direction, (ids, _)) in enumerate(window.candidates.items()):
            count = len(ids)
            own = buffers.candidate_rows.numpy()[index]
            log_shares = buffers.log_shares.numpy()[index]
            own[:count] = rows[index]
            log_shares[0, :count], log_shares[1, :count] = (
                sampler.log_frequency[ids],
                sampler.log_chance[ids],
            )
            order = np.argsort(ids)
            targets = sampler.class_of(window.ids[direction][:, 1:])
            buffers.labels.numpy()[index] = order[
                np.searchsorted(ids, targets, sorter=order)
            ]

    def batch(self, window: Window, buffers: Buffers, count: int) -> Batch:
        """The batch of a window with `count` distinct ids, in filled buffers."""
        candidates = {}
        for index, (direction, (ids, shared)) in enumerate(window.candidates.items()):
            own = slice(len(ids))
            log_frequency, log_chance = buffers.log_shares[index, :, own]
            rows = buffers.candidate_rows[index, own]
            labels = buffers.labels[index]
            candidates[direction] = Candidates(
                None, log_frequency, log_chance, labels, rows, shared
            )
        return Batch(
            token_ids=dict(zip(window.ids, buffers.token_ids, strict=True)),
            vector_rows=dict(zip(window.ids, buffers.vector_rows, strict=True)),
            input_vectors=buffers.vectors[0][:count],
            target_vectors=buffers.vectors[-1][:count] if self.has_targets else None,
            candidates=candidates,
            next=window.next,
        )


class Slot:
    """The buffers of one window: `host` in main memory and, for a GPU, pinned with
    twins there, `buffers`.

    The background thread calls `wait`, fills `host`, and calls `send`; the thread that
    computes calls `receive` before it uses `buffers`, and `release` after. A slot has
    to be released before it is filled again: `stream_batches` sees to that.

    Slots are made, received and released on the stream that computes; other streams
    that read the buffers have to be joined with it before. `wait` looks at an event, so
    a CUDA graph captured meanwhile in another thread needs
    `capture_error_mode="thread_local"`.

    Args:
        host, buffers: the same where batches are computed with on the CPU.
        side: the stream of the copies to a GPU; None on the CPU, where nothing is
            copied or waited for.
    """

    def __init__(
        self, host: Buffers, buffers: Buffers, side: torch.cuda.Stream | None
    ) -> None:
        self.host = host
        self.buffers = buffers
        self.side = side
        if side is not None:
            self.copied = torch.cuda.Event(blocking=True)  # a thread that waits sleeps
            self.released = torch.cuda.Event()
            # the memory may have been another tensor's that is still being read
            self.release()

    def wait(self) -> None:
        """Wait until `host` may be written again."""
        if self.side is not None:
            self.copied.synchronize()

    def send(self, count: int) -> None:
        """Start copying the window in `host`, with `count` distinct ids, to `buffers`."""
        if self.side is not None:
            with torch.cuda.stream(self.side):
                self.side.wait_event(self.released)
                self.buffers.copy_(self.host, count)
                self.copied.record(self.side)

    def receive(self) -> None:
        """Let all that is computed from now on read the window from `buffers`."""
        if self.side is not None:
            torch.cuda.current_stream(self.side.device).wait_event(self.copied)

    def release(self) -> None:
        """Let `buffers` be overwritten once what has been asked for so far is computed."""
        if self.side is not None:
            self.released.record(torch.cuda.current_stream(self.side.device))


def gather(window: Window, maker: BatchMaker, device: torch.device) -> Batch:
    """A batch of its own on the device."""
    host, buffers = (
        maker.buffers(window.shape, where) for where in (torch.device("cpu"), device)
    )
    count = maker.fill(window, host)
    buffers.copy_(host, count)
    return maker.batch(window, buffers, count)


def stream_batches(
    windows: Iterator[Window], maker: BatchMaker, device: torch.device
) -> Generator[Batch, None, None]:
    """Batches of `windows` on the device, made up to `BATCHES_AHEAD` windows ahead of
    time.

    A batch is valid until the next one is asked for, and what has been asked of the GPU
    by then is computed with it; after that its buffers are used again.
    """
    first = next(windows, None)
    if first is None:
        return
    side = None if device.type == "cpu" else torch.cuda.Stream(device)
    # One is being used, and `BATCHES_AHEAD` are made or being made: whoever takes a
    # batch has released the one before it, and only then is the next one asked for,
    # which is made in that slot.
    slots = []
    for _ in range(BATCHES_AHEAD + 1):
        host = maker.buffers(first.shape, torch.device("cpu"), pin=side is not None)
        slots.append(
            Slot(
                host, host if side is None else maker.buffers(first.shape, device), side
            )
        )

    def filled(coming: Iterator[Window]) -> Iterator[tuple[Slot, Batch]]:
        if (
            side is not None
        ):  # in this thread the current one is GPU 0 until then, and would be put to use
            torch.cuda.set_device(side.device)
        for number, window in enumerate(chain([first], coming)):
            slot = slots[number % len(slots)]
            slot.wait()
            count = maker.fill(window, slot.host)
            slot.send(count)
            yield slot, maker.batch(window, slot.buffers, count)

    try:
        with (
            closing(prefetched(windows, WINDOWS_AHEAD)) as coming,
            closing(prefetched(filled(coming), BATCHES_AHEAD)) as ready,
        ):
            for slot, batch in ready:
                slot.receive()
                yield batch
                slot.release()
    finally:
        for slot in slots:
            slot.wait()  # its memory may be given away now


def prefetched(items: Iterator[Item], ahead: int) -> Generator[Item, None, None]:
    """The same items, made by a background thread up to `ahead` of them ahead of time.

    An exception in the thread is raised here. Closing the generator ends the thread.
    """
    end = object()
    thread = ThreadPoolExecutor(1, "vector-streaming")
    try:
        coming = deque(thread.submit(next, items, end) for _ in range(ahead))
        while (item := coming.popleft().result()) is not end:
            coming.append(thread.submit(next, items, end))
            yield cast("Item", item)
    finally:
        # an abandoned generator is closed when Python ends, and so the thread has ended
        if not sys.is_finalizing():
            thread.shutdown(cancel_futures=True)
