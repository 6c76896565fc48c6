"""Windows: the order in which training reads a corpus, and the place in it.

The sentences (or documents) of a group of text are shuffled together and concatenated; the stream is cut into B equal
streams; a window is T consecutive tokens of each. The backward direction reads the whole stream reversed.
"""

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
                tokens = shuffled(corpus, group, order)
                rows = {direction: cut_streams(tokens, streams, direction)[own] for direction in directions}
                for index in range(position.window, count):
                    last = index == count - 1
                    position = Position(position.epoch, place + 1 if last else place, 0 if last else index + 1)
                    ids = {name: window_at(streams_, index, window, ahead) for name, streams_ in rows.items()}
                    yield Window(ids, position, ahead=ahead)
            else:
                position = Position(position.epoch, place + 1, 0)
        position = replace(position, epoch=position.epoch + 1, shard=0, window=0)


def held_out_windows(
    corpus: Corpus, *, streams: int, window: int, directions: tuple[str, ...], words: int, source: str = ""
) -> Iterator[dict[str, np.ndarray]]:
    """Ids [B, T + 1] for each direction over the first `words` held-out tokens of a source, in the order of the text.

    Fewer streams are used where the held-out text is short.
    """
    require_held_out(corpus, window)
    tokens = np.concatenate([corpus.read_shard(shard) for shard in corpus.held_out if shard.source == source])
    streams = max(1, min(streams, len(tokens) // (4 * window)))
    available = windows_of(len(tokens), streams, window)
    wanted = max(1, -(-words // (streams * window)))
    rows = {direction: cut_streams(tokens, streams, direction) for direction in directions}
    for index in range(min(available, wanted)):
        yield {name: window_at(streams_, index, window) for name, streams_ in rows.items()}


def require_held_out(corpus: Corpus, window: int) -> None:
    """Raise an `InputError` when too little text (of a source) is held out to be read in windows of this length."""
    for source in corpus.held_out_sources or [""]:
        tokens = sum(shard.tokens for shard in corpus.held_out if shard.source == source)
        if tokens < 2 * window:
            of_source = f" of {source}" if source else ""
            raise InputError(
                f"{corpus.path} holds out only {tokens} tokens{of_source}: hold out more text when building it"
            )


def shuffled(corpus: Corpus, group: Group, order: str) -> np.ndarray:
    """uint32 [tokens]: the sentences, or the documents, of a group in random order."""
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
    return tokens[offsets + np.arange(len(tokens))]


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


def cut_streams(tokens: np.ndarray, streams: int, direction: str) -> np.ndarray:
    """uint32 [B, tokens // B] in the direction's reading order; what does not fill a stream is left out."""
    if direction == "backward":
        tokens = tokens[::-1]
    return tokens[: len(tokens) // streams * streams].reshape(streams, -1)


def window_at(rows: np.ndarray, index: int, window: int, ahead: int = 1) -> np.ndarray:
    """[B, T + A]: the tokens of window `index` and the `ahead` ones after."""
    return rows[:, index * window : (index + 1) * window + ahead]
