"""Groups of text: which parts of which shards are shuffled together, in the order of an epoch.

A corpus without named sources is read shard by shard, in random order, a few at a time. Where text has sources, every
group holds all of them in proportion, so that an encoder never reads one kind of text alone: each source is an endless
stream of its shards, in another random order each time round, of which an epoch reads as much as the source's weight
says, and each of its G groups a G-th of that. Everything random comes from (seed, epoch, group), and no group needs
those before it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError

_SENTENCE_STEP = 4096


@dataclass(frozen=True)
class Part:
    """The tokens of a shard from `start` to `end`, at both of which a sentence starts (or the shard ends)."""

    shard: Shard
    start: int
    end: int


@dataclass(frozen=True)
class Group:
    """Parts whose text is shuffled together, by a generator with this `seed`."""

    parts: tuple[Part, ...]
    seed: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Of all parts together."""
        return sum(part.end - part.start for part in self.parts)


class TextGroups(ABC):
    """The groups of every epoch."""

    count: int
    """Groups of an epoch."""
    most_tokens: int
    """Tokens of the largest group, about."""
    mix: int
    """Shards, about, that a group has."""
    shards: int
    """How many there are."""

    @abstractmethod
    def group(self, epoch: int, place: int) -> Group:
        """The group at a place of an epoch, from 0 to `count` − 1."""

    @cached_property
    def first_sizes(self) -> list[int]:
        """Tokens of each group of the first epoch; those of others differ a little."""
        return [self.group(0, place).tokens for place in range(self.count)]

    def mix_for(self, tokens: int) -> int:
        """The `mix` that makes groups of about so many tokens, or of everything, where that is less."""
        return min(self.shards, math.ceil(tokens * self.count / sum(self.first_sizes) * min(self.mix, self.shards)))


def text_groups(corpus: Corpus, weights: Mapping[str, float], *, mix: int, seed: int) -> TextGroups:
    """The groups of a corpus, each of about the size of `mix` shards; `weights` of its sources are 1 unless given."""
    require_sources(corpus, weights)
    if corpus.sources == [""]:
        return ShardGroups(corpus, mix=mix, seed=seed)
    return SourceGroups(corpus, weights, mix=mix, seed=seed)


def require_sources(corpus: Corpus, weights: Mapping[str, float]) -> None:
    """Raise an `InputError` for a weight of a source that the corpus does not have, and where none is to be read."""
    if unknown := [name for name in weights if name not in corpus.sources]:
        known = ", ".join(name for name in corpus.sources if name) or "none: build it with NAME=FILE"
        raise InputError(f"data.sources: {corpus.path} has no source {unknown[0]:.50} (it has {known})")
    if not any(weights.get(name, 1.0) for name in corpus.sources):
        raise InputError(f"data.sources gives every source of {corpus.path} the weight 0: give one a weight above 0")


class ShardGroups(TextGroups):
    """Whole shards in random order, `mix` of them at a time."""

    def __init__(self, corpus: Corpus, *, mix: int, seed: int) -> None:
        self._corpus = corpus
        self._seed = seed
        self.mix = mix
        self.shards = len(corpus.train)
        self.count = -(-self.shards // mix)
        self.most_tokens = sum(sorted(shard.tokens for shard in corpus.train)[-mix:])

    def group(self, epoch: int, place: int) -> Group:
        """See `TextGroups`."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._corpus.train))
        chosen = order[place * self.mix : (place + 1) * self.mix].tolist()
        parts = (Part(shard, 0, shard.tokens) for shard in (self._corpus.train[index] for index in chosen))
        return Group(tuple(parts), (self._seed, epoch, chosen[0]))


class SourceGroups(TextGroups):
    """All sources in proportion."""

    def __init__(self, corpus: Corpus, weights: Mapping[str, float], *, mix: int, seed: int) -> None:
        self._seed = seed
        self._streams = [
            SourceStream(corpus, name, weights.get(name, 1.0), seed=(seed, index))
            for index, name in enumerate(corpus.sources)
            if weights.get(name, 1.0)
        ]
        self.mix = mix
        self.shards = sum(len(stream.shards) for stream in self._streams)
        tokens = sum(stream.tokens for stream in self._streams)
        an_epoch = sum(stream.of_an_epoch for stream in self._streams)
        self.count = max(1, round(an_epoch / Fraction(mix * tokens, self.shards)))
        self.most_tokens = int(an_epoch / self.count)

    def group(self, epoch: int, place: int) -> Group:
        """See `TextGroups`."""
        before = epoch * self.count + place
        begin, end = Fraction(before, self.count), Fraction(before + 1, self.count)
        parts = (part for stream in self._streams for part in stream.parts(begin, end))
        return Group(tuple(parts), (self._seed, epoch, place))


class SourceStream:
    """The shards of one source without end, each time round in another random order.

    Positions are tokens from the beginning of the stream.

    Args:
        corpus, name: the source.
        weight: how many times round it an epoch reads.
        seed: of the orders.
    """

    def __init__(self, corpus: Corpus, name: str, weight: float, *, seed: tuple[int, int]) -> None:
        self._corpus = corpus
        self._seed = seed
        self.shards = [shard for shard in corpus.train if shard.source == name]
        self.tokens = sum(shard.tokens for shard in self.shards)
        self.of_an_epoch = self.tokens * Fraction(str(weight))
        self._round = lru_cache(maxsize=4)(self._new_round)

    def parts(self, begin: Fraction, end: Fraction) -> Iterator[Part]:
        """What is read from one time to another, both of them in epochs."""
        position, stop = (self._sentence_start(int(epochs * self.of_an_epoch)) for epochs in (begin, end))
        while position < stop:
            shard, start = self._locate(position)
            part = Part(shard, start, min(shard.tokens, start + stop - position))
            yield part
            position += part.end - part.start

    def _new_round(self, number: int) -> tuple[Sequence[int], np.ndarray]:
        """The order of the shards in one time round, and where each of them ends in it."""
        order = np.random.default_rng([*self._seed, number, 1]).permutation(len(self.shards)).tolist()
        return order, np.cumsum([self.shards[index].tokens for index in order])

    def _locate(self, position: int) -> tuple[Shard, int]:
        """The shard at a position, and the place in it."""
        number, offset = divmod(position, self.tokens)
        order, ends = self._round(number)
        index = int(np.searchsorted(ends, offset, side="right"))
        shard = self.shards[order[index]]
        return shard, offset - int(ends[index]) + shard.tokens

    def _sentence_start(self, position: int) -> int:
        """The first position, from this one on, at which a sentence starts."""
        shard, place = self._locate(position)
        for start in range(place, shard.tokens, _SENTENCE_STEP):
            ids = self._corpus.read_shard(shard, start, start + _SENTENCE_STEP)
            found = np.flatnonzero(ids == self._corpus.begin_id)
            if len(found):
                return position + start - place + int(found[0])
        return position + shard.tokens - place
