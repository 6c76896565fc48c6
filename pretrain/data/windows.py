"""Windows: in which order training reads a corpus, and where in it a run is.

Groups of text have all sources in proportion to their weights, so that an encoder never
reads one kind of text alone. Each source is an endless stream of its shards, in another
random order each time round. An epoch reads as much of it as the source's weight says,
each of its G groups a G-th of that. The sentences (or documents) of a group are
shuffled together and concatenated; that text is cut into B equal streams; a window is T
consecutive tokens of each, and the next token of each. The backward direction reads the
whole text reversed.

Everything random comes from (seed, epoch, group), and no group needs earlier ones: any
position can be gone back to.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from elmoc.corpus import ID_DTYPE, Corpus, Shard
from elmoc.errors import InputError

# What is shuffled.
Order = Literal["sentences", "documents"]
# Tokens that each stream of held-out text has at least, where there are several
# streams.
SHORTEST_STREAM = 80
# Tokens that are searched at once for the beginning of a sentence.
_SEARCHED = 256


@dataclass(frozen=True)
class Position:
    """The next window to read: `shard` is the number of its group of text in the epoch."""

    epoch: Annotated[int, Meta(ge=0)] = 0
    shard: Annotated[int, Meta(ge=0)] = 0
    window: Annotated[int, Meta(ge=0)] = 0


class CandidateIds(NamedTuple):
    """The types that the targets of a window are told from.

    ids: uint32 [U], distinct.
    shared: the first `shared` ids are candidates of every target, each later one of the
    targets of its own type alone.
    """

    ids: np.ndarray
    shared: int


@dataclass(frozen=True)
class Window:
    """Token ids uint32 [B, T + 1] of each direction in its reading order; targets are
    the inputs shifted by 1.

    next: the position after this window, from which a resumed run goes on.
    candidates: of each direction, where an output layer asks for them.
    """

    ids: dict[str, np.ndarray]
    next: Position = Position()
    candidates: dict[str, CandidateIds] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int, int]:
        """[D, B, T + 1]"""
        streams, tokens = next(iter(self.ids.values())).shape
        return len(self.ids), streams, tokens


@dataclass(frozen=True)
class ShardSlice:
    """The tokens of a shard from `start` to `end`; a sentence starts at both (or the
    shard ends).
    """

    shard: Shard
    start: int
    end: int


@dataclass(frozen=True)
class Group:
    """Slices whose text is shuffled together, by a generator with this `seed`."""

    slices: tuple[ShardSlice, ...]
    seed: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Of all slices together."""
        return sum(each.end - each.start for each in self.slices)


class TextGroups:
    """The groups of every epoch, each of about the size of `mix` shards.

    Args:
        corpus: whose training text is read.
        weights: how many times an epoch reads each source, 1 unless given; a weight of
            a source that is not there is an `InputError`, and so are weights that are
            all 0.
        mix: how many shards' text is shuffled together.
        seed: of all that is random.
    """

    def __init__(
        self, corpus: Corpus, weights: Mapping[str, float], *, mix: int, seed: int
    ) -> None:
        if unknown := [name for name in weights if name not in corpus.sources]:
            known = (
                ", ".join(name for name in corpus.sources if name)
                or "none: build it with NAME=FILE"
            )
            raise InputError(
                f"data.sources: {corpus.path} has no source {unknown[0]:.50} (it has {known})"
            )
        if not any(weights.get(name, 1.0) for name in corpus.sources):
            raise InputError(
                f"data.sources gives every source of {corpus.path} the weight 0: give one a weight above 0"
            )
        self.corpus = corpus
        self._seed = seed
        self._streams = [
            SourceStream(
                corpus,
                weights.get(name, 1.0),
                seed=(seed, index),
                shards=[shard for shard in corpus.train if shard.source == name],
            )
            for index, name in enumerate(corpus.sources)
            if weights.get(name, 1.0)
        ]
        shards = sum(len(stream.shards) for stream in self._streams)
        shard_tokens = Fraction(sum(stream.tokens for stream in self._streams), shards)
        self.epoch_tokens = sum(stream.epoch_tokens for stream in self._streams)
        self.count = max(
            1, round(self.epoch_tokens / (mix * shard_tokens))
        )  # groups of an epoch

    def group(self, epoch: int, place: int) -> Group:
        """The group at a place of an epoch, from 0 to `count` − 1; its slices are in
        the order of the files.
        """
        before = epoch * self.count + place
        begin = Fraction(before, self.count)
        end = Fraction(before + 1, self.count)
        slices = [
            each for stream in self._streams for each in stream.slices(begin, end)
        ]
        slices.sort(key=lambda each: (each.shard.file, each.start))
        return Group(tuple(slices), (self._seed, epoch, place))


class SourceStream:
    """The shards of one source without end, each time round in another random order.

    Positions are tokens from the beginning of the stream.

    Args:
        corpus: of the source.
        weight: how many times round an epoch reads.
        seed: of the orders.
        shards: all of the source's text.
    """

    def __init__(
        self,
        corpus: Corpus,
        weight: float,
        *,
        seed: tuple[int, int],
        shards: Sequence[Shard],
    ) -> None:
        self.shards = shards
        self._corpus = corpus
        self._seed = seed
        self._sizes = np.array([shard.tokens for shard in shards], dtype=np.int64)
        self.tokens = int(self._sizes.sum())
        self.epoch_tokens = self.tokens * Fraction(str(weight))
        self._round = lru_cache(maxsize=4)(self._new_round)

    def slices(self, begin: Fraction, end: Fraction) -> Iterator[ShardSlice]:
        """What is read from one time to another, both of them in epochs."""
        position, stop = (
            self._sentence_start(int(epochs * self.epoch_tokens))
            for epochs in (begin, end)
        )
        while position < stop:
            shard, start = self._locate(position)
            last = min(shard.tokens, start + stop - position)
            yield ShardSlice(shard, start, last)
            position += last - start

    def _new_round(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The order of the shards in one time round, and where each of them ends in it."""
        order = np.random.default_rng([*self._seed, number, 1]).permutation(
            len(self.shards)
        )
        return order, np.cumsum(self._sizes[order])

    def _locate(self, position: int) -> tuple[Shard, int]:
        """The shard at a position, and the place in the shard."""
        number, offset = divmod(position, self.tokens)
        order, ends = self._round(number)
        index = int(np.searchsorted(ends, offset, side="right"))
        shard = self.shards[order[index]]
        return shard, shard.tokens - (int(ends[index]) - offset)

    def _sentence_start(self, position: int) -> int:
        """The first position, from this one on, at which a sentence (or the next shard)
        starts.
        """
        shard, place = self._locate(position)
        ids = self._corpus.map_shard(shard)
        for start in range(place, shard.tokens, _SEARCHED):
            found = np.flatnonzero(
                ids[start : start + _SEARCHED] == self._corpus.begin_id
            )
            if len(found):
                return position + start + int(found[0]) - place
        return position + shard.tokens - place


def windows_of(tokens: int, streams: int, window: int) -> int:
    """The windows of a text of `tokens` tokens in all."""
    return max(0, (tokens // streams - 1) // window)


def windows_per_epoch(groups: TextGroups, *, streams: int, window: int) -> int:
    """The updates of the first epoch (later ones differ a little); none at all is an
    `InputError`.
    """
    tokens = [groups.group(0, place).tokens for place in range(groups.count)]
    count = sum(windows_of(each, streams, window) for each in tokens)
    if count == 0:
        raise InputError(
            f"train.streams={streams} with train.window={window} need {streams * (window + 1):,} tokens, and the "
            f"shards of {groups.corpus.path} that are read together hold {max(tokens):,} at most: use fewer streams, a "
            "higher train.mix_shards, or more text"
        )
    return count


def training_windows(
    groups: TextGroups,
    *,
    streams: int,
    window: int,
    order: str,
    directions: tuple[str, ...],
    position: Position,
) -> Iterator[Window]:
    """Windows from `position` on, epoch after epoch, without end; `order`, one of
    `ORDERS`, says what is shuffled.
    """
    while True:
        for place in range(position.shard, groups.count):
            group = groups.group(position.epoch, place)
            count = windows_of(group.tokens, streams, window)
            if count:
                tokens = shuffled(groups.corpus, group, order)
                rows = {name: streams_of(tokens, streams, name) for name in directions}
            for index in range(position.window, count):
                last = index == count - 1
                position = Position(
                    position.epoch,
                    place + 1 if last else place,
                    0 if last else index + 1,
                )
                start = index * window
                yield Window(
                    {
                        name: each[:, start : start + window + 1]
                        for name, each in rows.items()
                    },
                    position,
                )
            if position.shard == place:  # too little text for a window
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
) -> Iterator[Window]:
    """Windows [B, T + 1] of `words` held-out tokens of a source; T of the last one may
    be less.

    They are the beginnings of `streams` equal parts of the text, or of fewer where it
    is short, so that which tokens are read does not depend on the window.
    """
    shards = [shard for shard in corpus.held_out if shard.source == source]
    tokens = tokens_of(corpus, [ShardSlice(shard, 0, shard.tokens) for shard in shards])
    streams = max(1, min(streams, len(tokens) // SHORTEST_STREAM))
    rows = {name: streams_of(tokens, streams, name) for name in directions}
    targets = min(math.ceil(words / streams), len(tokens) // streams - 1)  # of a stream
    for start in range(0, targets, window):
        end = min(start + window, targets) + 1
        yield Window({name: each[:, start:end] for name, each in rows.items()})


def require_held_out(corpus: Corpus, window: int) -> None:
    """Raise an `InputError` when less than two windows of a source are held out."""
    for source in corpus.held_out_sources or [""]:
        tokens = sum(
            shard.tokens for shard in corpus.held_out if shard.source == source
        )
        if tokens < 2 * window:
            raise InputError(
                f"{corpus.path} holds out only {tokens} tokens{source and f' of {source}'}, less than two windows of "
                f"train.window={window}: hold out more text when building it, or use a shorter window"
            )


def shuffled(corpus: Corpus, group: Group, order: str) -> np.ndarray:
    """uint32 [tokens]: the sentences, or the documents, of a group in random order."""
    tokens = tokens_of(corpus, group.slices)
    starts = np.flatnonzero(tokens == corpus.begin_id)
    if len(starts) == 0 or starts[0] != 0:
        raise InputError(
            f"{corpus.path / group.slices[0].shard.file} does not start with <s>: build the corpus again"
        )
    if order == "documents":
        starts = document_starts(corpus, group.slices)
    lengths = np.diff(starts, append=len(tokens))
    permutation = np.random.default_rng(group.seed).permutation(len(starts))
    lengths = lengths[permutation]
    ends = np.cumsum(lengths)
    offsets = np.repeat(starts[permutation] - (ends - lengths), lengths)
    return tokens[offsets + np.arange(len(tokens))]


def tokens_of(corpus: Corpus, slices: Sequence[ShardSlice]) -> np.ndarray:
    """uint32 [tokens]: the text of all slices; one file is open at a time, however many
    there are.
    """
    tokens = np.empty(sum(each.end - each.start for each in slices), dtype=ID_DTYPE)
    place = 0
    for each in slices:
        ids = corpus.read_shard(each.shard, each.start, each.end)
        tokens[place : place + len(ids)] = ids
        place += len(ids)
    return tokens


def document_starts(corpus: Corpus, slices: Sequence[ShardSlice]) -> np.ndarray:
    """int64 [documents]: where documents start in the text of slices; a document that
    is cut is one in each slice.
    """
    starts = []
    before = 0
    for each in slices:
        documents = corpus.read_documents(each.shard)
        inside = documents[(documents > each.start) & (documents < each.end)]
        starts += [before, *(before - each.start + inside).tolist()]
        before += each.end - each.start
    return np.array(starts, dtype=np.int64)


def streams_of(tokens: np.ndarray, streams: int, direction: str) -> np.ndarray:
    """[B, tokens // B]: a text as B equal streams in the reading order of a direction;
    the rest is left out.
    """
    tokens = tokens[::-1] if direction == "backward" else tokens
    return tokens[: len(tokens) // streams * streams].reshape(streams, -1)
