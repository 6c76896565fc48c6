"""Windows: in which order training reads a corpus, and where in it a run is.

Groups of text have all sources in proportion to their weights, so that an encoder never
reads one kind of text alone. Each source is read without end, its shards in another
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
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from elmoc.corpus import Corpus, Shard, tokens_before_sentence
from elmoc.errors import InputError

# What is shuffled.
Order = Literal["sentences", "documents"]
# Tokens that each stream of held-out text has at least, where there are several
# streams.
SHORTEST_STREAM = 80


@dataclass(frozen=True)
class Position:
    """The next window to read.

    epoch: the number of the epoch.
    group: the number of the group in the epoch.
    window: the number of the window in the group.
    """

    epoch: int = 0
    group: int = 0
    window: int = 0


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
    """T tokens of each stream, and the next token of each.

    ids: of each direction, token ids uint32 [B, T + 1] in its reading order; targets
        are the inputs shifted by 1.
    next: the position after this window, from which a resumed run goes on.
    candidates: of each direction, where an output layer asks for them.
    """

    ids: dict[str, np.ndarray]
    next: Position = Position()
    candidates: dict[str, CandidateIds] = field(default_factory=dict)


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
        weights: how many times an epoch reads each source, 1 unless given.
        mix: how many shards' text is shuffled together.
        seed: of all that is random.

    Raises:
        InputError: a weight is of a source that is not there, or all weights are 0.
    """

    def __init__(
        self, corpus: Corpus, weights: Mapping[str, float], *, mix: int, seed: int
    ) -> None:
        self.corpus = corpus
        self._seed = seed
        for name in weights:
            if name not in corpus.sources:
                raise InputError(
                    f"data.sources: {corpus.path} has no source {name:.50} (it has "
                    f"{', '.join(corpus.sources) or 'none: build it with NAME=FILE'})"
                )
        self._sources = [
            EndlessSource(corpus, name, weights.get(name, 1.0), seed=(seed, index))
            for index, name in enumerate(corpus.sources)
            if weights.get(name, 1.0)
        ]
        if not self._sources:
            raise InputError(
                f"data.sources gives every source of {corpus.path} the weight 0: give "
                "one a weight above 0"
            )
        self.epoch_tokens = sum(source.epoch_tokens for source in self._sources)
        tokens = sum(source.tokens for source in self._sources)
        shard_count = sum(len(source.shards) for source in self._sources)
        # groups of an epoch, each of the text of `mix` shards
        self.count = max(1, round(self.epoch_tokens * shard_count / (mix * tokens)))

    def group(self, epoch: int, place: int) -> Group:
        """The group at a place of an epoch, from 0 to `count` − 1; its slices are in
        the order of the files.
        """
        before = epoch * self.count + place
        begin = Fraction(before, self.count)
        end = Fraction(before + 1, self.count)
        slices = sorted(
            chain.from_iterable(each.slices(begin, end) for each in self._sources),
            key=lambda each: (each.shard.file, each.start),
        )
        return Group(tuple(slices), (self._seed, epoch, place))


class EndlessSource:
    """The shards of one source without end, each time round in another random order.

    Positions are tokens from the beginning.

    Args:
        corpus: of the source.
        name: of the source.
        weight: how many times round an epoch reads.
        seed: of the orders.
    """

    def __init__(
        self, corpus: Corpus, name: str, weight: float, *, seed: tuple[int, int]
    ) -> None:
        self.shards = [shard for shard in corpus.train if shard.source == name]
        self._corpus = corpus
        self._seed = seed
        self._sizes = np.array([shard.tokens for shard in self.shards], dtype=np.int64)
        self.tokens = int(self._sizes.sum())
        # by the digits of the weight: as a float, 0.4 is a little more than 2/5
        self.epoch_tokens = self.tokens * Fraction(str(weight))

    def slices(self, begin: Fraction, end: Fraction) -> Iterator[ShardSlice]:
        """What is read from one time to another, both of them in epochs."""
        position = self._sentence_start(int(begin * self.epoch_tokens))
        stop = self._sentence_start(int(end * self.epoch_tokens))
        while position < stop:
            shard, start = self._locate(position)
            last = min(shard.tokens, start + stop - position)
            yield ShardSlice(shard, start, last)
            position += last - start

    def _locate(self, position: int) -> tuple[Shard, int]:
        """The shard at a position, and the place in the shard."""
        number, offset = divmod(position, self.tokens)
        generator = np.random.default_rng([*self._seed, number, 1])
        order = generator.permutation(len(self.shards))
        ends = np.cumsum(self._sizes[order])
        index = int(np.searchsorted(ends, offset, side="right"))
        shard = self.shards[order[index]]
        return shard, shard.tokens - (int(ends[index]) - offset)

    def _sentence_start(self, position: int) -> int:
        """The first position, from this one on, at which a sentence (or the next shard)
        starts.
        """
        shard, place = self._locate(position)
        rest = self._corpus.map_shard(shard)[place:]
        return position + tokens_before_sentence(rest, self._corpus.begin_id)


def windows_of(tokens: int, streams: int, window: int) -> int:
    """The windows of a text of `tokens` tokens in all."""
    return max(0, (tokens // streams - 1) // window)


def windows_per_epoch(groups: TextGroups, *, streams: int, window: int) -> int:
    """The updates of the first epoch (later ones differ a little).

    Raises:
        InputError: there are none.
    """
    tokens = [groups.group(0, place).tokens for place in range(groups.count)]
    count = sum(windows_of(each, streams, window) for each in tokens)
    if count == 0:
        raise InputError(
            f"train.streams={streams} with train.window={window} need "
            f"{streams * (window + 1):,} tokens, and the shards of "
            f"{groups.corpus.path} that are read together hold {max(tokens):,} at "
            "most: use fewer streams, a higher train.mix_shards, or more text"
        )
    return count


def training_windows(
    groups: TextGroups,
    *,
    streams: int,
    window: int,
    order: Order,
    directions: tuple[str, ...],
    position: Position,
) -> Iterator[Window]:
    """Windows from `position` on, epoch after epoch, without end.

    Args:
        groups: of each epoch.
        streams: B
        window: T
        order: what is shuffled.
        directions: that the windows have.
        position: of the first window.
    """
    while True:
        for place in range(position.group, groups.count):
            group = groups.group(position.epoch, place)
            count = windows_of(group.tokens, streams, window)
            rows: dict[str, np.ndarray] = {}
            if count:
                tokens = shuffled(groups.corpus, group, order)
                rows = {name: streams_of(tokens, streams, name) for name in directions}
            following = Position(position.epoch, place + 1)
            for index in range(position.window, count):
                within = Position(position.epoch, place, index + 1)
                own = slice(index * window, (index + 1) * window + 1)
                ids = {name: each[:, own] for name, each in rows.items()}
                yield Window(ids, following if index == count - 1 else within)
            position = following
        position = Position(position.epoch + 1)


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
    # of a stream, whose last token is a target alone
    targets = min(math.ceil(words / streams), len(tokens) // streams - 1)
    for start in range(0, targets, window):
        own = slice(start, min(start + window, targets) + 1)
        yield Window({name: each[:, own] for name, each in rows.items()})


def require_held_out(corpus: Corpus, window: int) -> None:
    """Raise an `InputError` when less than two windows of a source are held out."""
    for source in corpus.held_out_sources or [""]:
        tokens = sum(each.tokens for each in corpus.held_out if each.source == source)
        if tokens < 2 * window:
            raise InputError(
                f"{corpus.path} holds out only {tokens} tokens of {source or 'text'}, "
                f"less than two windows of train.window={window}: hold out more text "
                "when building it, or use a shorter window"
            )


def shuffled(corpus: Corpus, group: Group, order: Order) -> np.ndarray:
    """uint32 [tokens]: the sentences, or the documents, of a group in random order."""
    tokens = tokens_of(corpus, group.slices)
    starts = np.flatnonzero(tokens == corpus.begin_id)
    if len(starts) == 0 or starts[0] != 0:
        raise InputError(
            f"{corpus.path / group.slices[0].shard.file} does not start with <s>: "
            "build the corpus again"
        )
    if order == "documents":
        starts = document_starts(corpus, group.slices)
    lengths = np.diff(starts, append=len(tokens))
    permutation = np.random.default_rng(group.seed).permutation(len(starts))
    starts = starts[permutation]
    lengths = lengths[permutation]
    # where each of them comes to begin
    places = np.cumsum(lengths) - lengths
    # all tokens are moved by one indexing, since a group has millions of sentences
    return tokens[np.repeat(starts - places, lengths) + np.arange(len(tokens))]


def tokens_of(corpus: Corpus, slices: Sequence[ShardSlice]) -> np.ndarray:
    """uint32 [tokens]: the text of all slices."""
    # a copy closes its file, and a group may have slices of very many
    texts = [
        np.array(corpus.read_shard(each.shard, each.start, each.end)) for each in slices
    ]
    return np.concatenate(texts)


def document_starts(corpus: Corpus, slices: Sequence[ShardSlice]) -> np.ndarray:
    """int64 [documents]: where documents start in the text of slices; a document that
    is cut is one in each slice.
    """
    starts: list[int] = []
    before = 0
    for each in slices:
        documents = corpus.read_documents(each.shard)
        inside = documents[(documents > each.start) & (documents < each.end)]
        starts.append(before)
        starts += (before - each.start + inside).tolist()
        before += each.end - each.start
    return np.array(starts, dtype=np.int64)


def streams_of(tokens: np.ndarray, streams: int, direction: str) -> np.ndarray:
    """[B, tokens // B]: a text as B equal streams in the reading order of a direction;
    the rest is left out.
    """
    if direction == "backward":
        tokens = tokens[::-1]
    length = len(tokens) // streams
    return tokens[: streams * length].reshape(streams, length)
