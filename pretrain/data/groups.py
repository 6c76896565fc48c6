"""Groups of text: which pieces of a corpus are shuffled together, in the order of an epoch.

Every group holds all sources in proportion to their weights, so that an encoder never reads one kind of text alone.
Each source is an endless stream of its pieces (whole shards, or parts of them), in another random order each time
round, of which an epoch reads as much as the source's weight says, and each of its G groups a G-th of that. Everything
random comes from (seed, epoch, group), and no group needs those before it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError

LEAST_PIECE = 4096
"""Tokens of a piece, about, at least."""
_SENTENCE_STEP = 256


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


class TextGroups:
    """The groups of every epoch, each of about the size of `mix` shards.

    Args:
        corpus: whose training text is read.
        weights: how many times an epoch reads each source, 1 unless given; a source that the corpus does not have is an
            `InputError`.
        mix: so many shards' text is shuffled together.
        seed: of all that is random.
        pieces: so many of a shard are in random order, rather than whole shards; fewer where they would be short.
        whole_documents: no piece ends within a document; the borders of groups may cut one.
    """

    def __init__(
        self,
        corpus: Corpus,
        weights: Mapping[str, float],
        *,
        mix: int,
        seed: int,
        pieces: int = 1,
        whole_documents: bool = False,
    ) -> None:
        require_sources(corpus, weights)
        self._seed = seed
        self._streams = [
            SourceStream(
                corpus,
                weights.get(name, 1.0),
                seed=(seed, index),
                pieces=[
                    piece
                    for shard in corpus.train
                    if shard.source == name
                    for piece in pieces_of(corpus, shard, pieces, whole_documents=whole_documents)
                ],
            )
            for index, name in enumerate(corpus.sources)
            if weights.get(name, 1.0)
        ]
        self.mix = mix
        self.shards = sum(weights.get(shard.source, 1.0) > 0 for shard in corpus.train)
        """How many there are."""
        self._shard_tokens = Fraction(sum(stream.tokens for stream in self._streams), self.shards)
        self._epoch_tokens = sum(stream.of_an_epoch for stream in self._streams)
        self.count = max(1, round(self._epoch_tokens / (mix * self._shard_tokens)))
        """Groups of an epoch."""
        self.most_tokens = int(self._epoch_tokens / self.count)
        """Tokens of the largest group, about."""

    def group(self, epoch: int, place: int) -> Group:
        """The group at a place of an epoch, from 0 to `count` − 1; its parts are in the order of the files."""
        before = epoch * self.count + place
        begin, end = Fraction(before, self.count), Fraction(before + 1, self.count)
        parts = [part for stream in self._streams for part in stream.parts(begin, end)]
        parts.sort(key=lambda part: (part.shard.file, part.start))
        return Group(tuple(parts), (self._seed, epoch, place))

    @cached_property
    def first_sizes(self) -> list[int]:
        """Tokens of each group of the first epoch; those of others differ a little."""
        return [self.group(0, place).tokens for place in range(self.count)]

    def mix_for(self, tokens: int) -> int:
        """The `mix` that makes groups of about so many tokens, or of a whole epoch, where that is less."""
        return math.ceil(min(tokens, self._epoch_tokens) / self._shard_tokens)


def require_sources(corpus: Corpus, weights: Mapping[str, float]) -> None:
    """Raise an `InputError` for a weight of a source that the corpus does not have, and where none is to be read."""
    if unknown := [name for name in weights if name not in corpus.sources]:
        known = ", ".join(name for name in corpus.sources if name) or "none: build it with NAME=FILE"
        raise InputError(f"data.sources: {corpus.path} has no source {unknown[0]:.50} (it has {known})")
    if not any(weights.get(name, 1.0) for name in corpus.sources):
        raise InputError(f"data.sources gives every source of {corpus.path} the weight 0: give one a weight above 0")


class SourceStream:
    """The pieces of one source without end, each time round in another random order.

    Positions are tokens from the beginning of the stream.

    Args:
        corpus: that the source is of.
        weight: how many times round it an epoch reads.
        seed: of the orders.
        pieces: all of its text.
    """

    def __init__(self, corpus: Corpus, weight: float, *, seed: tuple[int, int], pieces: Sequence[Part]) -> None:
        self._corpus = corpus
        self._seed = seed
        self._pieces = pieces
        self._sizes = np.array([piece.end - piece.start for piece in pieces], dtype=np.int64)
        self.tokens = int(self._sizes.sum())
        self.of_an_epoch = self.tokens * Fraction(str(weight))
        self._round = lru_cache(maxsize=4)(self._new_round)

    def parts(self, begin: Fraction, end: Fraction) -> Iterator[Part]:
        """What is read from one time to another, both of them in epochs."""
        position, stop = (self._sentence_start(int(epochs * self.of_an_epoch)) for epochs in (begin, end))
        while position < stop:
            piece, start = self._locate(position)
            part = Part(piece.shard, start, min(piece.end, start + stop - position))
            yield part
            position += part.end - part.start

    def _new_round(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The order of the pieces in one time round, and where each of them ends in it."""
        order = np.random.default_rng([*self._seed, number, 1]).permutation(len(self._pieces))
        return order, np.cumsum(self._sizes[order])

    def _locate(self, position: int) -> tuple[Part, int]:
        """The piece at a position, and the place in its shard."""
        number, offset = divmod(position, self.tokens)
        order, ends = self._round(number)
        index = int(np.searchsorted(ends, offset, side="right"))
        piece = self._pieces[order[index]]
        return piece, piece.end - (int(ends[index]) - offset)

    def _sentence_start(self, position: int) -> int:
        """The first position, from this one on, at which a sentence starts."""
        piece, place = self._locate(position)
        ids = self._corpus.map_shard(piece.shard)
        return position + next_sentence(self._corpus, ids, place, piece.end) - place


def pieces_of(corpus: Corpus, shard: Shard, pieces: int, *, whole_documents: bool) -> list[Part]:
    """A shard in so many pieces of about equal size, each of which begins with a sentence, or with a document.

    There are fewer where they would be smaller than `LEAST_PIECE`, and where a sentence or document is longer than one.
    """
    count = min(pieces, shard.tokens // LEAST_PIECE)
    if count <= 1:
        return [Part(shard, 0, shard.tokens)]
    ids = corpus.map_shard(shard)
    documents = corpus.read_documents(shard) if whole_documents else None
    borders = {0, shard.tokens}
    for near in (shard.tokens * place // count for place in range(1, count)):
        if documents is None:
            borders.add(next_sentence(corpus, ids, near, shard.tokens))
        elif (index := int(np.searchsorted(documents, near))) < len(documents):
            borders.add(int(documents[index]))
    return [Part(shard, start, end) for start, end in pairwise(sorted(borders))]


def next_sentence(corpus: Corpus, ids: np.ndarray, place: int, end: int) -> int:
    """The first place in a shard's `ids`, from this one on, at which a sentence starts; `end` where there is none."""
    for start in range(place, end, _SENTENCE_STEP):
        found = np.flatnonzero(ids[start : min(end, start + _SENTENCE_STEP)] == corpus.begin_id)
        if len(found):
            return start + int(found[0])
    return end
