"""Windows: the order in which training reads a corpus, and the place in it.

The sentences (or documents) of a group of text are shuffled together and concatenated; the stream is cut into B equal
streams; a window is T consecutive tokens of each. The backward direction reads the whole stream reversed.

Windows follow each other without a gap, unless they are cut at sentences or documents (`CUTS`): then each begins with
one, and reads again what the window before it broke off.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.settings import setting
from pretrain.data.groups import Group, text_groups

ORDERS = ("sentences", "documents")
"""What is shuffled."""
CUTS = ("anywhere", "sentences", "documents")
"""Where windows begin."""
UNWEIGHTED: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Position:
    """The next window to read: `shard` counts the groups of text in the order of the epoch."""

    epoch: int = setting(0, least=0)
    shard: int = setting(0, least=0)
    window: int = setting(0, least=0)


class CandidateIds(NamedTuple):
    """The types among which the targets of a window are told."""

    ids: np.ndarray
    """uint32 [U]: distinct."""
    common: int
    """So many of them, the first ones, are candidates of every target; each of the others of its own targets alone."""


@dataclass(frozen=True)
class Window:
    """Token ids uint32 [B, T + A] for each direction, in its reading order; targets are inputs shifted by 1 to A."""

    ids: dict[str, np.ndarray]
    next: Position
    """The position after this window: what a resumed run goes on from."""
    candidates: dict[str, CandidateIds] = field(default_factory=dict)
    """For each direction the types among which its targets are told; none unless asked for."""
    ahead: int = 1
    """How many words further than the inputs the targets reach: A."""


def windows_of(tokens: int, streams: int, window: int, ahead: int = 1) -> int:
    """The windows that `streams` streams of `tokens` tokens together give, if targets reach `ahead` words further."""
    return max(0, (tokens // streams - ahead) // window)


def windows_per_epoch(
    corpus: Corpus,
    streams: int,
    window: int,
    *,
    mix: int = 1,
    seed: int = 0,
    weights: Mapping[str, float] = UNWEIGHTED,
    ahead: int = 1,
) -> int:
    """The updates of the first epoch (what is mixed changes it a little); none at all is an `InputError`."""
    groups = text_groups(corpus, weights, mix=mix, seed=seed)
    tokens = [groups.group(0, place).tokens for place in range(groups.count)]
    count = sum(windows_of(each, streams, window, ahead) for each in tokens)
    if count == 0:
        raise InputError(
            f"train.streams={streams} times train.window={window} is more than the shards of {corpus.path} hold "
            f"({max(tokens):,} tokens at most): use fewer streams, e.g. {max(1, max(tokens) // (10 * (window + 1)))}"
        )
    return count


def training_windows(
    corpus: Corpus,
    *,
    streams: int,
    window: int,
    directions: tuple[str, ...],
    seed: int,
    position: Position,
    mix: int = 1,
    weights: Mapping[str, float] = UNWEIGHTED,
    order: str = ORDERS[0],
    cut: str = CUTS[0],
    own: slice = slice(None),
    ahead: int = 1,
) -> Iterator[Window]:
    """Windows from `position` on, epoch after epoch, without end; of the `streams` streams only `own` are read.

    The sentences (or documents, by `order`) of `mix` shards, or as much text of all sources, are shuffled together.
    Everything random comes from (seed, epoch, group), so any position can be gone back to.
    """
    groups = text_groups(corpus, weights, mix=mix, seed=seed)
    while True:
        for place in range(position.shard, groups.count):
            group = groups.group(position.epoch, place)
            count = windows_of(group.tokens, streams, window, ahead)
            if count > position.window:
                tokens, documents = shuffled(corpus, group, order)
                units = units_of(corpus, tokens, documents, cut)
                rows = {
                    direction: Streams(tokens, streams, direction, length=window + ahead, step=window, units=units)
                    for direction in directions
                }
                for index in range(position.window, count):
                    last = index == count - 1
                    position = Position(position.epoch, place + 1 if last else place, 0 if last else index + 1)
                    ids = {name: streams_.window(index)[own] for name, streams_ in rows.items()}
                    yield Window(ids, position, ahead=ahead)
            else:
                position = Position(position.epoch, place + 1, 0)
        position = replace(position, epoch=position.epoch + 1, shard=0, window=0)


def held_out_windows(
    corpus: Corpus,
    *,
    streams: int,
    window: int,
    directions: tuple[str, ...],
    words: int,
    source: str = "",
    cut: str = CUTS[0],
) -> Iterator[dict[str, np.ndarray]]:
    """Ids [B, T + 1] for each direction over the first `words` held-out tokens of a source, in the order of the text.

    Fewer streams are used where the held-out text is short.
    """
    require_held_out(corpus, window)
    shards = [shard for shard in corpus.held_out if shard.source == source]
    tokens = np.concatenate([corpus.read_shard(shard) for shard in shards])
    before = np.cumsum([0, *(shard.tokens for shard in shards)])
    documents = np.concatenate([corpus.read_documents(shard) + at for shard, at in zip(shards, before, strict=False)])
    units = units_of(corpus, tokens, documents, cut)
    streams = max(1, min(streams, len(tokens) // (4 * window)))
    available = windows_of(len(tokens), streams, window)
    wanted = max(1, -(-words // (streams * window)))
    rows = {
        direction: Streams(tokens, streams, direction, length=window + 1, step=window, units=units)
        for direction in directions
    }
    for index in range(min(available, wanted)):
        yield {name: streams_.window(index) for name, streams_ in rows.items()}


def require_held_out(corpus: Corpus, window: int) -> None:
    """Raise an `InputError` when too little text (of a source) is held out to be read in windows of this length."""
    for source in corpus.held_out_sources or [""]:
        tokens = sum(shard.tokens for shard in corpus.held_out if shard.source == source)
        if tokens < 2 * window:
            of_source = f" of {source}" if source else ""
            raise InputError(
                f"{corpus.path} holds out only {tokens} tokens{of_source}: hold out more text when building it"
            )


def shuffled(corpus: Corpus, group: Group, order: str) -> tuple[np.ndarray, np.ndarray]:
    """The sentences, or the documents, of a group in random order, uint32 [tokens], and where each begins, [n]."""
    tokens = np.concatenate([corpus.read_shard(part.shard, part.start, part.end) for part in group.parts])
    sentences = np.flatnonzero(tokens == corpus.begin_id)
    if len(sentences) == 0 or sentences[0] != 0:
        file = corpus.path / group.parts[0].shard.file
        raise InputError(f"{file} does not start with <s>: build the corpus again")
    starts = sentences if order == "sentences" else document_starts(corpus, group)
    lengths = np.diff(starts, append=len(tokens))
    permutation = np.random.default_rng(group.seed).permutation(len(starts))
    lengths = lengths[permutation]
    ends = np.cumsum(lengths)
    offsets = np.repeat(starts[permutation] - (ends - lengths), lengths)
    return tokens[offsets + np.arange(len(tokens))], ends - lengths


def document_starts(corpus: Corpus, group: Group) -> np.ndarray:
    """int64 [documents]: where documents start in the text of a group; one that is cut is one in each of its parts."""
    starts = []
    before = 0
    for part in group.parts:
        documents = corpus.read_documents(part.shard)
        inside = documents[(documents > part.start) & (documents < part.end)]
        starts += [before, *(before - part.start + inside).tolist()]
        before += part.end - part.start
    return np.array(starts, dtype=np.int64)


def units_of(corpus: Corpus, tokens: np.ndarray, documents: np.ndarray, cut: str) -> np.ndarray | None:
    """Where the sentences of a text begin, or its documents, whichever it is cut at; None where it is cut anywhere."""
    if cut == "anywhere":
        return None
    return documents if cut == "documents" else np.flatnonzero(tokens == corpus.begin_id)


class Streams:
    """A text as B equal streams in the reading order of a direction; what does not fill a stream is left out.

    Args:
        tokens: uint32 [n]
        streams: B
        direction: `forward` or `backward`, which reads the whole text reversed.
        length: tokens of a window, T + A.
        step: T, by which the next window is further where units do not say otherwise.
        units: where the sentences (or documents) begin that windows begin with; None: windows follow each other.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        streams: int,
        direction: str,
        *,
        length: int,
        step: int,
        units: np.ndarray | None = None,
    ) -> None:
        if direction == "backward":
            tokens = tokens[::-1]
            units = None if units is None else np.sort(len(tokens) - np.append(units[1:], len(tokens)))
        self._rows = tokens[: len(tokens) // streams * streams].reshape(streams, -1)
        self._length, self._step = length, step
        self._begins = None if units is None else self._cut_at(units)

    def window(self, index: int) -> np.ndarray:
        """uint32 [B, T + A]"""
        if self._begins is None:
            return self._rows[:, index * self._step : index * self._step + self._length]
        places = self._begins[:, index, np.newaxis] + np.arange(self._length)
        return np.take_along_axis(self._rows, places, axis=1)

    def _cut_at(self, units: np.ndarray) -> np.ndarray:
        """int64 [B, windows]: where in its stream each window begins.

        That is the last unit which begins in the window before or right behind it; of a unit that is longer than a
        window, the next part.
        """
        streams, tokens = self._rows.shape
        begins = np.zeros((streams, (tokens - self._length) // self._step + 1), dtype=np.int64)
        for row in range(streams):
            first, end = np.searchsorted(units, (row * tokens, (row + 1) * tokens))
            own = (units[first:end] - row * tokens).tolist()
            place = own[0] if own and own[0] < self._step else 0
            for index in range(begins.shape[1]):
                begins[row, index] = place = min(place, tokens - self._length)
                last = own[at - 1] if (at := bisect_right(own, place + self._step)) else 0
                place = last if last > place else place + self._step
        return begins
