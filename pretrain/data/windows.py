"""Windows: the order in which training reads a corpus, and the place in it.

The sentences of a few shards are shuffled together and concatenated; the stream is cut into B equal streams; a window
is T consecutive tokens of each. The backward direction reads the whole stream reversed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError
from elmoc.settings import setting


@dataclass(frozen=True)
class Position:
    """The next window to read: `shard` counts the groups of shards in the order of the epoch."""

    epoch: int = setting(0, least=0)
    shard: int = setting(0, least=0)
    window: int = setting(0, least=0)


@dataclass(frozen=True)
class Window:
    """Token ids uint32 [B, T + A] for each direction, in its reading order; targets are inputs shifted by 1 to A."""

    ids: dict[str, np.ndarray]
    next: Position
    """The position after this window: what a resumed run goes on from."""
    candidates: dict[str, np.ndarray] = field(default_factory=dict)
    """For each direction uint32 [U], ascending: the types among which its targets are told; none unless asked for."""
    ahead: int = 1
    """How many words further than the inputs the targets reach: A."""


def windows_of(tokens: int, streams: int, window: int, ahead: int = 1) -> int:
    """The windows that `streams` streams of `tokens` tokens together give, if targets reach `ahead` words further."""
    return max(0, (tokens // streams - ahead) // window)


def shard_groups(corpus: Corpus, *, mix: int, seed: int, epoch: int) -> list[list[Shard]]:
    """The training shards of an epoch in random order, `mix` of them at a time."""
    order = np.random.default_rng([seed, epoch]).permutation(len(corpus.train))
    return [[corpus.train[index] for index in order[start : start + mix]] for start in range(0, len(order), mix)]


def windows_per_epoch(corpus: Corpus, streams: int, window: int, *, mix: int = 1, seed: int = 0, ahead: int = 1) -> int:
    """The updates of the first epoch (which shards are mixed changes it a little); none at all is an `InputError`."""
    tokens = [sum(shard.tokens for shard in group) for group in shard_groups(corpus, mix=mix, seed=seed, epoch=0)]
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
    own: slice = slice(None),
    ahead: int = 1,
) -> Iterator[Window]:
    """Windows from `position` on, epoch after epoch, without end; of the `streams` streams only `own` are read.

    The sentences of `mix` shards at a time are shuffled together. Everything random comes from (seed, epoch, shard), so
    any position can be gone back to.
    """
    while True:
        groups = shard_groups(corpus, mix=mix, seed=seed, epoch=position.epoch)
        for place in range(position.shard, len(groups)):
            group = groups[place]
            count = windows_of(sum(shard.tokens for shard in group), streams, window, ahead)
            if count > position.window:
                generator = np.random.default_rng([seed, position.epoch, corpus.train.index(group[0])])
                tokens = shuffled_sentences(corpus, group, generator)
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
    corpus: Corpus, *, streams: int, window: int, directions: tuple[str, ...], words: int
) -> Iterator[dict[str, np.ndarray]]:
    """Ids [B, T + 1] for each direction over the first `words` held-out tokens, in the order of the text.

    Fewer streams are used where the held-out text is short.
    """
    require_held_out(corpus, window)
    tokens = np.concatenate([corpus.read_shard(shard) for shard in corpus.held_out])
    streams = max(1, min(streams, len(tokens) // (4 * window)))
    available = windows_of(len(tokens), streams, window)
    wanted = max(1, -(-words // (streams * window)))
    rows = {direction: cut_streams(tokens, streams, direction) for direction in directions}
    for index in range(min(available, wanted)):
        yield {name: window_at(streams_, index, window) for name, streams_ in rows.items()}


def require_held_out(corpus: Corpus, window: int) -> None:
    """Raise an `InputError` when too little text is held out to be read in windows of this length."""
    tokens = sum(shard.tokens for shard in corpus.held_out)
    if tokens < 2 * window:
        raise InputError(f"{corpus.path} holds out only {tokens} tokens: hold out more text when building it")


def shuffled_sentences(corpus: Corpus, shards: Sequence[Shard], generator: np.random.Generator) -> np.ndarray:
    """uint32 [tokens]: the sentences of the shards, together, in random order."""
    tokens = np.concatenate([corpus.read_shard(shard) for shard in shards])
    starts = np.flatnonzero(tokens == corpus.begin_id)
    if len(starts) == 0 or starts[0] != 0:
        raise InputError(f"{corpus.path / shards[0].file} does not start with <s>: build the corpus again")
    lengths = np.diff(starts, append=len(tokens))
    order = generator.permutation(len(starts))
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    offsets = np.repeat(starts[order] - (ends - lengths), lengths)
    return tokens[offsets + np.arange(len(tokens))]


def cut_streams(tokens: np.ndarray, streams: int, direction: str) -> np.ndarray:
    """uint32 [B, tokens // B] in the direction's reading order; what does not fill a stream is left out."""
    if direction == "backward":
        tokens = tokens[::-1]
    return tokens[: len(tokens) // streams * streams].reshape(streams, -1)


def window_at(rows: np.ndarray, index: int, window: int, ahead: int = 1) -> np.ndarray:
    """[B, T + A]: the tokens of window `index` and the `ahead` ones after."""
    return rows[:, index * window : (index + 1) * window + ahead]
