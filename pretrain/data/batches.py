"""Batches: how do the vectors of a window's words get to the device, ahead of time?

The distinct ids of a window are found, and only their rows of the vector tables are
gathered; inputs, targets, candidates and both directions share them. A background
thread does so for windows to come.
Letters: B streams, T time, E word-vector width, V lexicon size, D directions, U
candidates, n distinct ids of a window.
"""

import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pretrain.data.candidates import CandidateSampler
from pretrain.data.windows import Position, Window
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Candidates, Targets

# Batches that are made while another one is computed with: a slow read of the disk
# does not stop the computation.
BATCHES_AHEAD = 3
# Windows of ids that are read ahead, so that nothing waits while the sentences of the
# next group are shuffled.
WINDOWS_AHEAD = 64


@dataclass(frozen=True)
class Batch:
    """A window with the vectors that it needs.

    token_ids: for each direction int64 [B, T + 1], the lexicon row of each token.
    vector_rows: for each direction int64 [B, T + 1], the row of each token in the
        vectors of the batch.
    input_vectors: [n, E] in the dtype of the table.
    target_vectors: [n, E] likewise; None where no output layer reads them.
    candidates: for each direction, where an output layer asks for them. Their `ids` are
        rows of the target vectors, where there are any.
    next: the position after this window.
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
        distinct, index = torch.unique(
            self.vector_rows[direction][:, :-1], return_inverse=True
        )
        return self.input_vectors[distinct], index

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
        own = vectors[candidates.ids].float()
        return Targets(ids, None, candidates._replace(vectors=own, ids=None))

    def map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch with a function of each of its tensors."""
        targets = self.target_vectors
        return Batch(
            token_ids={name: function(ids) for name, ids in self.token_ids.items()},
            vector_rows={
                name: function(rows) for name, rows in self.vector_rows.items()
            },
            input_vectors=function(self.input_vectors),
            target_vectors=None if targets is None else function(targets),
            candidates={
                name: each.map(function) for name, each in self.candidates.items()
            },
            next=self.next,
        )

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; from pinned memory the copies are only started."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


class BatchMaker:
    """Gathers what windows need from the vector tables, which stay memory-mapped.

    Args:
        inputs: the table [V, E] that the encoder reads.
        targets: the table of the targets; None: no output layer reads target vectors.
        sampler: of the candidates, where windows have any.
    """

    def __init__(
        self,
        inputs: LexiconTable,
        targets: LexiconTable | None,
        *,
        sampler: CandidateSampler | None = None,
    ) -> None:
        self.sampler = sampler
        self.inputs = rows_of(inputs)  # [V, E]
        self.targets = None if targets is None else rows_of(targets)

    def batch(self, window: Window) -> Batch:
        """The batch of a window, in main memory."""
        words = np.stack(list(window.ids.values()))  # [D, B, T + 1]
        parts = [words.ravel()]
        if self.targets is not None:
            # vectors of candidates are gathered with those of the words
            parts += [each.ids for each in window.candidates.values()]
        distinct, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        index = torch.from_numpy(distinct.astype(np.int64))
        inputs = self.inputs.index_select(0, index)
        targets = None if self.targets is None else self.targets.index_select(0, index)
        # rows of these vectors: of the words, then of the candidates of each direction
        rows, *own = np.split(inverse, np.cumsum([len(part) for part in parts[:-1]]))
        if targets is None:
            own = [each.ids.astype(np.int64) for each in window.candidates.values()]
        token_ids = torch.from_numpy(words.astype(np.int64))
        vector_rows = torch.from_numpy(rows.reshape(words.shape))
        return Batch(
            token_ids=dict(zip(window.ids, token_ids, strict=True)),
            vector_rows=dict(zip(window.ids, vector_rows, strict=True)),
            input_vectors=inputs,
            target_vectors=targets,
            candidates={
                direction: self._candidates(window, direction, ids)
                for direction, ids in zip(window.candidates, own, strict=True)
            },
            next=window.next,
        )

    def _candidates(
        self, window: Window, direction: str, rows: np.ndarray
    ) -> Candidates:
        """The candidates of a direction, whose `ids` are int64 [U], `rows`."""
        sampler = self.sampler
        assert sampler is not None
        ids, shared = window.candidates[direction]
        # ids are not in order where the targets' own stand behind the drawn ones
        order = np.argsort(ids)
        classes = sampler.class_of(window.ids[direction][:, 1:])  # [B, T]
        return Candidates(
            vectors=None,
            log_frequency=torch.from_numpy(sampler.log_frequency[ids]),
            log_chance=torch.from_numpy(sampler.log_chance[ids]),
            labels=torch.from_numpy(order[np.searchsorted(ids, classes, sorter=order)]),
            ids=torch.from_numpy(rows),
            shared=shared,
        )


def rows_of(table: LexiconTable) -> Tensor:
    """The rows of a table [V, E], without reading them."""
    with warnings.catch_warnings():
        # the rows are memory-mapped, and nobody writes to them
        warnings.filterwarnings("ignore", message="The given NumPy array is not writ")
        return torch.from_numpy(table.rows)


def stream_batches(
    windows: Iterator[Window], maker: BatchMaker, device: torch.device
) -> Generator[Batch, None, None]:
    """Batches of windows on the device, made up to `BATCHES_AHEAD` windows ahead of
    time.
    """

    def made(window: Window) -> Batch:
        batch = maker.batch(window)
        # From pinned memory a copy to an accelerator is only asked for: it runs in the
        # order of what is computed, and nobody waits. PyTorch uses the memory again
        # once the copy is done.
        return batch if device.type == "cpu" else batch.map(Tensor.pin_memory)

    with (
        closing(prefetched(windows, WINDOWS_AHEAD)) as coming,
        closing(prefetched(map(made, coming), BATCHES_AHEAD)) as ready,
    ):
        for batch in ready:
            yield batch.to(device)


def prefetched(items: Iterator[Any], ahead: int) -> Generator[Any, None, None]:
    """The same items, made by a background thread up to `ahead` of them ahead of time.

    An exception in the thread is raised here. Closing the generator ends the thread.
    """
    end = object()
    thread = ThreadPoolExecutor(1, "vector-streaming")
    try:
        coming = deque(thread.submit(next, items, end) for _ in range(ahead))
        while (item := coming.popleft().result()) is not end:
            coming.append(thread.submit(next, items, end))
            yield item
    finally:
        # when Python ends, the interpreter has ended the thread before it closes
        # generators that nobody has closed
        if not sys.is_finalizing():
            thread.shutdown(cancel_futures=True)
