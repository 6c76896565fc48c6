"""Batches: a window with the vectors of its words, and the buffers and tables that these come from.

The distinct ids of a window are found, and only their rows gathered. Inputs, targets, candidates and both directions
share the rows. Letters: B streams, T time, A words ahead, E word-vector width, V lexicon size, D directions, U distinct
ids or candidates of a window, K the most candidates of any window.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from pretrain.data.candidates import CandidateSampler, LogUniformSampler
from pretrain.data.windows import Position, Window
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Candidates, Targets


@dataclass
class BatchCandidates:
    """The candidates of one direction, U of them.

    rows        int64 [U]: the row of each in the target vectors, or its id where no output layer reads these
    places      int64 [B, T + A − 1]: the place of each target among them
    log_shares  float32 [2, U]: log frequency, and log chance of being a candidate
    common      so many of them, the first ones, are candidates of every target
    """

    rows: Tensor
    places: Tensor
    log_shares: Tensor
    common: int

    def of(self, target_vectors: Tensor | None) -> Candidates:
        """With their vectors, or their ids."""
        vectors, ids = (None, self.rows) if target_vectors is None else (target_vectors[self.rows].float(), None)
        return Candidates(vectors, self.log_shares[0], self.log_shares[1], self.places, ids, self.common)


@dataclass
class Batch:
    """A window with the vectors that it needs.

    ids       for each direction int64 [B, T + A]: the row of each token in the lexicon
    rows      for each direction int64 [B, T + A]: the row of each token in the vectors
    input_vectors, target_vectors  [U, E]: in the tables' dtype, those of the window's distinct ids, or whole tables;
              no target vectors where no output layer reads them
    next      the position after this window
    candidates  for each direction those among which targets are told, where an output layer asks for them
    ahead     A: how many words further than the inputs the targets reach
    """

    ids: dict[str, Tensor]
    rows: dict[str, Tensor]
    input_vectors: Tensor
    target_vectors: Tensor | None
    next: Position
    candidates: Mapping[str, BatchCandidates] = field(default_factory=dict)
    ahead: int = 1

    def inputs(self, direction: str) -> Tensor:
        """float32 [B, T, E]: what the direction reads."""
        return self.input_vectors[self.rows[direction][:, : -self.ahead]].float()

    def distinct_inputs(self, direction: str) -> tuple[Tensor, Tensor]:
        """The distinct rows that the direction reads, [n, E] in the table's dtype, and the place of each [B, T]."""
        rows, places = torch.unique(self.rows[direction][:, : -self.ahead], return_inverse=True)
        return self.input_vectors[rows], places

    def targets(self, direction: str) -> Targets:
        """The words [B, T] that the direction is to predict, and those after them."""
        ids, rows, vectors = self.ids[direction], self.rows[direction], self.target_vectors
        candidates = self.candidates[direction].of(vectors) if direction in self.candidates else None
        targets = None
        for shift in range(self.ahead, 0, -1):
            own = slice(shift, ids.shape[1] - self.ahead + shift)
            if candidates is not None:  # which have the vectors of all targets
                places = candidates.places[:, own.start - 1 : own.stop - 1]
                targets = Targets(ids[:, own], None, candidates._replace(places=places), after=targets)
            elif vectors is None:
                targets = Targets(ids[:, own], None, after=targets)
            else:
                targets = Targets(ids[:, own], vectors[rows[:, own]].float(), after=targets)  # [B, T, E]
        assert targets is not None
        return targets


@dataclass
class CandidateBuffers:
    """Room for the candidates of a window.

    rows        int64 [D, K]: rows in the vectors, or ids
    places      int64 [D, B, T + A − 1]: the place of each target among the candidates
    log_shares  float32 [D, 2, K]: log frequency, and log chance of being a candidate
    """

    rows: Tensor
    places: Tensor
    log_shares: Tensor

    def copy_(self, other: "CandidateBuffers") -> None:
        """Take over everything."""
        for own, others in ((self.rows, other.rows), (self.places, other.places), (self.log_shares, other.log_shares)):
            start_copy(own, others)

    def candidates(self, window: Window, *, fixed_sizes: bool) -> dict[str, BatchCandidates]:
        """Those of each direction of a window, as they will be once they are received; with `fixed_sizes` all rows."""
        found = {}
        for index, (direction, (ids, common)) in enumerate(window.candidates.items()):
            count = self.rows.shape[1] if fixed_sizes else len(ids)
            found[direction] = BatchCandidates(
                self.rows[index, :count], self.places[index], self.log_shares[index, :, :count], common
            )
        return found


@dataclass
class Buffers:
    """Room for what a window needs.

    ids, rows   int64 [D, B, T + A]: rows in the lexicon, and in the vectors; the same tensor where these are the same
    vectors     [U, E] of each table
    candidates  where an output layer asks for them
    """

    ids: Tensor
    rows: Tensor
    vectors: list[Tensor]
    candidates: CandidateBuffers | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        tensors = [self.ids, *self.vectors, *([] if self.rows is self.ids else [self.rows])]
        of_candidates = () if self.candidates is None else vars(self.candidates).values()
        return sum(each.nbytes for each in (*tensors, *of_candidates))

    def copy_(self, other: "Buffers", count: int) -> None:
        """Take over ids, rows and the first `count` vectors; from pinned memory the copies are only started."""
        start_copy(self.ids, other.ids)
        if self.rows is not self.ids:
            start_copy(self.rows, other.rows)
        for own, others in zip(self.vectors, other.vectors, strict=True):
            start_copy(own[:count], others[:count])
        if self.candidates is not None and other.candidates is not None:
            self.candidates.copy_(other.candidates)


def start_copy(to: Tensor, source: Tensor) -> None:
    """Copy on the current stream, without waiting for it where the memory is pinned."""
    to.copy_(source, non_blocking=True)


class Tables(ABC):
    """The tables that batches take their vectors from: that of the inputs, and that of the targets.

    There is one where both are the same, or `targets` is None, since no output layer reads target vectors. With
    `fixed_sizes`, every batch has as many candidates as a window can have; those past its own have log chance ∞.
    """

    def __init__(
        self,
        inputs: LexiconTable,
        targets: LexiconTable | None,
        *,
        sampler: CandidateSampler | LogUniformSampler | None = None,
        fixed_sizes: bool = False,
    ) -> None:
        tables = [inputs] if targets is None or targets.path == inputs.path else [inputs, targets]
        self.has_targets = targets is not None
        self.sampler = sampler
        self.fixed_sizes = fixed_sizes
        with warnings.catch_warnings():  # the rows are memory-mapped, and nobody may write to them
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            self.tables = [torch.from_numpy(table.rows) for table in tables]  # [V, E] each

    @abstractmethod
    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        """Room for windows of `shape` [D, B, T + A]."""

    @abstractmethod
    def fill(self, window: Window, buffers: Buffers) -> int:
        """Put a window's ids, their vectors, and its candidates into buffers; returns how many vectors."""

    @abstractmethod
    def vectors(self, buffers: Buffers, count: int) -> list[Tensor]:
        """The vectors of each table that `buffers.rows` are rows of."""

    def batch(self, window: Window, buffers: Buffers, count: int) -> Batch:
        """The batch in filled buffers."""
        vectors = self.vectors(buffers, count)
        token_ids, rows = (dict(zip(window.ids, each, strict=True)) for each in (buffers.ids, buffers.rows))
        candidates = {}
        if buffers.candidates is not None:
            candidates = buffers.candidates.candidates(window, fixed_sizes=self.fixed_sizes)
        targets = vectors[-1] if self.has_targets else None
        return Batch(token_ids, rows, vectors[0], targets, window.next, candidates, window.ahead)

    def candidate_buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> CandidateBuffers | None:
        """Room for the candidates of windows of `shape` [D, B, T + A]; None where no output layer asks for them."""
        if self.sampler is None:
            return None
        directions, streams, tokens = shape
        most = self.sampler.most

        def empty(*sizes: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(sizes, dtype=dtype, device=device, pin_memory=pin)

        return CandidateBuffers(
            rows=empty(directions, most, dtype=torch.int64),
            places=empty(directions, streams, tokens - 1, dtype=torch.int64),
            log_shares=empty(directions, 2, most, dtype=torch.float32),
        )

    def fill_candidates(self, window: Window, buffers: CandidateBuffers, rows: Mapping[str, np.ndarray]) -> None:
        """Put a window's candidates, whose rows in the vectors are `rows` [U] for each direction, into buffers."""
        assert self.sampler is not None
        for index, (direction, (ids, _)) in enumerate(window.candidates.items()):
            count = len(ids)
            own, log_shares = buffers.rows.numpy()[index], buffers.log_shares.numpy()[index]
            own[:count], own[count:] = rows[direction], 0
            log_shares[0, :count], log_shares[0, count:] = self.sampler.log_frequency[ids], 0
            log_shares[1, :count], log_shares[1, count:] = self.sampler.log_chance[ids], np.inf
            order = np.argsort(ids)
            targets = self.sampler.class_of(window.ids[direction][:, 1:])
            buffers.places.numpy()[index] = order[np.searchsorted(ids, targets, sorter=order)]


class StreamedTables(Tables):
    """Tables that stay in main memory: a batch has the rows of its distinct ids."""

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        most = math.prod(shape)
        if self.sampler is not None and self.has_targets:
            most += shape[0] * self.sampler.most
        count = min(most, len(self.tables[0]))  # the most rows that a window can have

        def empty(*sizes: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(sizes, dtype=dtype, device=device, pin_memory=pin)

        vectors = [empty(count, table.shape[1], dtype=table.dtype) for table in self.tables]
        candidates = self.candidate_buffers(shape, device, pin)
        return Buffers(empty(*shape, dtype=torch.int64), empty(*shape, dtype=torch.int64), vectors, candidates)

    def fill(self, window: Window, buffers: Buffers) -> int:
        together = np.stack(list(window.ids.values()))  # [D, B, T + A]
        buffers.ids.numpy()[...] = together
        candidates = {direction: each.ids for direction, each in window.candidates.items()}
        parts = [together.ravel(), *(candidates.values() if self.has_targets else ())]
        distinct, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        places = np.split(inverse, np.cumsum([len(part) for part in parts])[:-1])
        buffers.rows.view(-1).copy_(torch.from_numpy(places[0]))
        index = torch.from_numpy(distinct.astype(np.int64))
        for table, vectors in zip(self.tables, buffers.vectors, strict=True):
            torch.index_select(table, 0, index, out=vectors[: len(index)])
        if buffers.candidates is not None:
            rows = dict(zip(candidates, places[1:], strict=True)) if self.has_targets else candidates
            self.fill_candidates(window, buffers.candidates, rows)
        return len(index)

    def vectors(self, buffers: Buffers, count: int) -> list[Tensor]:
        return [vectors[:count] for vectors in buffers.vectors]


class ResidentTables(Tables):
    """Tables that are on the device as a whole: ids are their rows, and nothing else is sent.

    On the CPU they stay memory-mapped.
    """

    def __init__(
        self,
        inputs: LexiconTable,
        targets: LexiconTable | None,
        device: torch.device,
        *,
        sampler: CandidateSampler | LogUniformSampler | None = None,
        fixed_sizes: bool = False,
    ) -> None:
        super().__init__(inputs, targets, sampler=sampler, fixed_sizes=fixed_sizes)
        self.tables = [table.to(device) for table in self.tables]

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        ids = torch.empty(shape, dtype=torch.int64, device=device, pin_memory=pin)
        return Buffers(ids, ids, [], self.candidate_buffers(shape, device, pin))

    def fill(self, window: Window, buffers: Buffers) -> int:
        np.stack(list(window.ids.values()), out=buffers.ids.numpy(), casting="unsafe")
        if buffers.candidates is not None:
            rows = {direction: each.ids for direction, each in window.candidates.items()}
            self.fill_candidates(window, buffers.candidates, rows)
        return 0

    def vectors(self, buffers: Buffers, count: int) -> list[Tensor]:
        return self.tables
