"""Windows: the order in which training reads a corpus, and the place in it.

The sentences (or documents) of a group of text are shuffled together and concatenated; the stream is cut into B equal
streams; a window is T consecutive tokens of each. The backward direction reads the whole stream reversed.

Windows follow each other without a gap, unless they are cut at sentences or documents (`CUTS`): then each begins with
one, and what the window before it broke off is read again. Of a sentence or document that is longer than a window, the
next window has the next part.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from elmoc.corpus import ID_DTYPE, Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from elmoc.settings import setting
from pretrain.data.groups import Group, Part, TextGroups

ORDERS = ("sentences", "documents")
"""What is shuffled."""
ANYWHERE = "anywhere"
CUTS = (ANYWHERE, "sentences", "documents")
"""Where windows begin."""


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


@dataclass(frozen=True)
class Cut:
    """How groups of text become windows.

    streams, window: B and T.
    order: what is shuffled, one of `ORDERS`.
    at: where windows begin, one of `CUTS`.
    ahead: A, how many words further than the inputs the targets reach.
    """

    streams: int
    window: int
    order: str = ORDERS[0]
    at: str = ANYWHERE
    ahead: int = 1


def windows_of(tokens: int, streams: int, window: int, ahead: int = 1) -> int:
    """The windows that `streams` streams of `tokens` tokens together give, if targets reach `ahead` words further."""
    return max(0, (tokens // streams - ahead) // window)


NEARLY_ALL = 0.95
"""Of an epoch's text; where less is read, `unread_text` says so."""
WINDOWS_OF_A_GROUP = 20
"""Of so many, at most one is left out."""


def windows_per_epoch(corpus: Corpus, groups: TextGroups, cut: Cut) -> int:
    """The updates of the first epoch (what is mixed changes it a little); none at all is an `InputError`.

    Where windows are cut they are about so many: as many as the largest group of text has, by the tokens of all.
    """
    tokens = groups.first_sizes
    counts = [windows_of(each, cut.streams, cut.window, cut.ahead) for each in tokens]
    count = sum(counts)
    if count and cut.at != ANYWHERE:
        largest = int(np.argmax(counts))
        text = cut_text(corpus, groups.group(0, largest), cut)
        count = round(count * text[DIRECTIONS[0]].count / counts[largest])
    if count == 0:
        most, length = max(tokens), cut.window + cut.ahead
        advice = f"use fewer streams, e.g. {max(1, most // (10 * length))}"
        if most < length:
            advice = "use a shorter window, or more text"
        if windows_of(sum(tokens), cut.streams, cut.window, cut.ahead):
            advice = f"set train.mix_shards={_mix_for(groups, cut)}, or {advice}"
        elif windows_of(corpus.train_tokens, cut.streams, cut.window, cut.ahead):
            advice = f"raise the weights of data.sources, or {advice}"
        raise InputError(
            f"train.streams={cut.streams} with train.window={cut.window} need {cut.streams * length:,} tokens, targets "
            f"included, and the shards of {corpus.path} that are read together hold {most:,} at most: {advice}"
        )
    return count


def unread_text(groups: TextGroups, cut: Cut) -> str | None:
    """What to know of an epoch that leaves much of its text out, in a sentence; None where it reads nearly all.

    Of every group of text each stream leaves out what is less than a window.
    """
    tokens = groups.first_sizes
    read = sum(windows_of(each, cut.streams, cut.window, cut.ahead) for each in tokens) * cut.streams * cut.window
    if read >= NEARLY_ALL * sum(tokens):
        return None
    mix = _mix_for(groups, cut)
    more = f"set train.mix_shards={mix}, or " if groups.count > 1 and mix > groups.mix else ""
    return (
        f"an epoch reads {read / sum(tokens):.0%} of its text, since {cut.streams} streams take few whole windows of "
        f"{cut.window} words from so much as is shuffled together: {more}use fewer streams"
    )


def _mix_for(groups: TextGroups, cut: Cut) -> int:
    """The `train.mix_shards` that leaves little of a group's text out."""
    return groups.mix_for(cut.streams * (WINDOWS_OF_A_GROUP * cut.window + cut.ahead))


def training_windows(
    corpus: Corpus,
    groups: TextGroups,
    cut: Cut,
    *,
    directions: tuple[str, ...],
    position: Position,
    own: slice = slice(None),
) -> Iterator[Window]:
    """Windows from `position` on, epoch after epoch, without end; of all streams only `own` are read.

    The sentences (or documents) of a group are shuffled together. Everything random comes from the seed of the groups,
    epoch and group, so any position can be gone back to.
    """
    while True:
        for place in range(position.shard, groups.count):
            group = groups.group(position.epoch, place)
            count = windows_of(group.tokens, cut.streams, cut.window, cut.ahead)
            if count:
                text = cut_text(corpus, group, cut)
                count = text[DIRECTIONS[0]].count
            for index in range(position.window, count):
                last = index == count - 1
                position = Position(position.epoch, place + 1 if last else place, 0 if last else index + 1)
                yield Window({name: text[name].window(index)[own] for name in directions}, position, ahead=cut.ahead)
            if position.shard == place:  # too little text for a window
                position = Position(position.epoch, place + 1, 0)
        position = replace(position, epoch=position.epoch + 1, shard=0, window=0)


SHORTEST_STREAM = 80
"""Tokens that each stream of held-out text has at least, where it has several."""


def held_out_windows(
    corpus: Corpus,
    *,
    streams: int,
    window: int,
    directions: tuple[str, ...],
    words: int,
    source: str = "",
    at: str = ANYWHERE,
) -> Iterator[dict[str, np.ndarray]]:
    """Ids [B, T + 1] for each direction of `words` held-out tokens of a source; of the last window T may be less.

    They are the beginnings of so many equal parts of the text as there are streams, or of fewer where the held-out text
    is short. So which tokens are read does not depend on the window, unless windows are cut (`at` as in `Cut`): then
    some are in two windows, and all are whole.
    """
    require_held_out(corpus, window)
    shards = [shard for shard in corpus.held_out if shard.source == source]
    parts = [Part(shard, 0, shard.tokens) for shard in shards]
    tokens = tokens_of(corpus, parts)
    starts = None if at == ANYWHERE else starts_of(corpus, tokens, document_starts(corpus, parts), at)
    streams = max(1, min(streams, len(tokens) // (SHORTEST_STREAM if starts is None else 4 * window)))
    text = {name: Streams(tokens, streams, name, length=window + 1, step=window, starts=starts) for name in directions}
    if starts is None:
        targets = min(-(-words // streams), len(tokens) // streams - 1)  # of a stream
        for start in range(0, targets, window):
            yield {name: each.between(start, min(start + window, targets) + 1) for name, each in text.items()}
    else:
        wanted = max(1, -(-words // (streams * window)))
        for index in range(min(wanted, *(each.count for each in text.values()))):
            yield {name: each.window(index) for name, each in text.items()}


def require_held_out(corpus: Corpus, window: int) -> None:
    """Raise an `InputError` when too little text (of a source) is held out to be read in windows of this length."""
    for source in corpus.held_out_sources or [""]:
        tokens = sum(shard.tokens for shard in corpus.held_out if shard.source == source)
        if tokens < 2 * window:
            of_source = f" of {source}" if source else ""
            raise InputError(
                f"{corpus.path} holds out only {tokens} tokens{of_source}, less than two windows of train.window="
                f"{window}: hold out more text when building it, or use a shorter window"
            )


def shuffled(corpus: Corpus, group: Group, order: str) -> tuple[np.ndarray, np.ndarray]:
    """The sentences, or the documents, of a group in random order, uint32 [tokens], and where each begins, [n]."""
    tokens = tokens_of(corpus, group.parts)
    sentences = np.flatnonzero(tokens == corpus.begin_id)
    if len(sentences) == 0 or sentences[0] != 0:
        file = corpus.path / group.parts[0].shard.file
        raise InputError(f"{file} does not start with <s>: build the corpus again")
    starts = sentences if order == "sentences" else document_starts(corpus, group.parts)
    lengths = np.diff(starts, append=len(tokens))
    permutation = np.random.default_rng(group.seed).permutation(len(starts))
    lengths = lengths[permutation]
    ends = np.cumsum(lengths)
    offsets = np.repeat(starts[permutation] - (ends - lengths), lengths)
    return tokens[offsets + np.arange(len(tokens))], ends - lengths


def tokens_of(corpus: Corpus, parts: Sequence[Part]) -> np.ndarray:
    """uint32 [tokens]: the text of all parts; one file is open at a time, however many there are."""
    tokens = np.empty(sum(part.end - part.start for part in parts), dtype=ID_DTYPE)
    place = 0
    for part in parts:
        ids = corpus.read_shard(part.shard, part.start, part.end)
        tokens[place : place + len(ids)] = ids
        place += len(ids)
    return tokens


def document_starts(corpus: Corpus, parts: Sequence[Part]) -> np.ndarray:
    """int64 [documents]: where documents start in the text of parts; one that is cut is one in each of them."""
    starts = []
    before = 0
    shard = None
    for part in parts:
        if part.shard != shard:
            shard, documents = part.shard, corpus.read_documents(part.shard)
        inside = documents[(documents > part.start) & (documents < part.end)]
        starts += [before, *(before - part.start + inside).tolist()]
        before += part.end - part.start
    return np.array(starts, dtype=np.int64)


def starts_of(corpus: Corpus, tokens: np.ndarray, documents: np.ndarray, at: str) -> np.ndarray | None:
    """Where the sentences of a text begin, or its documents, whichever it is cut at; None where it is cut anywhere."""
    if at == ANYWHERE:
        return None
    return documents if at == "documents" else np.flatnonzero(tokens == corpus.begin_id)


def cut_text(corpus: Corpus, group: Group, cut: Cut) -> dict[str, "Streams"]:
    """The text of a group as streams of both directions, with as many windows."""
    tokens, documents = shuffled(corpus, group, cut.order)
    starts = starts_of(corpus, tokens, documents, cut.at)
    length = cut.window + cut.ahead
    text = {
        name: Streams(tokens, cut.streams, name, length=length, step=cut.window, starts=starts) for name in DIRECTIONS
    }
    count = min(each.count for each in text.values())
    for each in text.values():
        each.count = count
    return text


class Streams:
    """A text as B equal streams in the reading order of a direction; what does not fill a stream is left out.

    Args:
        tokens: uint32 [n]
        streams: B
        direction: `forward` or `backward`, which reads the whole text reversed.
        length: tokens of a window, T + A.
        step: T, by which the next window is further where no sentence (or document) begins.
        starts: where the sentences (or documents) begin that windows begin with; None: windows follow each other.
    """

    def __init__(
        self,
        tokens: np.ndarray,
        streams: int,
        direction: str,
        *,
        length: int,
        step: int,
        starts: np.ndarray | None = None,
    ) -> None:
        if direction == "backward":
            tokens = tokens[::-1]
            starts = None if starts is None else np.sort(len(tokens) - np.append(starts[1:], len(tokens)))
        self._rows = tokens[: len(tokens) // streams * streams].reshape(streams, -1)
        self._length, self._step = length, step
        self._begins = None if starts is None else self._cut_at(starts)
        self.count = (self._rows.shape[1] - length) // step + 1 if self._begins is None else self._begins.shape[1]
        """How many windows there are."""

    def between(self, start: int, end: int) -> np.ndarray:
        """uint32 [B, end − start]: tokens of each stream by their places."""
        return self._rows[:, start:end]

    def window(self, index: int) -> np.ndarray:
        """uint32 [B, T + A]"""
        if self._begins is None:
            return self.between(index * self._step, index * self._step + self._length)
        places = self._begins[:, index, np.newaxis] + np.arange(self._length)
        return np.take_along_axis(self._rows, places, axis=1)

    def _cut_at(self, starts: np.ndarray) -> np.ndarray:
        """int64 [B, windows]: where in its stream each window begins, until the first stream has come to its end.

        That is the last start in the window before or right behind it, or else where that window ends.
        """
        streams, tokens = self._rows.shape
        begins = []
        for row in range(streams):
            first, end = np.searchsorted(starts, (row * tokens, (row + 1) * tokens))
            own = (starts[first:end] - row * tokens).tolist()
            place = own[0] if own and own[0] < self._step else 0
            places = [min(place, tokens - self._length)]
            while places[-1] + self._step + self._length <= tokens:
                place = places[-1] + self._step
                last = own[at - 1] if (at := bisect_right(own, place)) else 0
                places.append(last if last > places[-1] else place)
            begins.append(places)
        count = min(map(len, begins))
        return np.array([places[:count] for places in begins], dtype=np.int64)
