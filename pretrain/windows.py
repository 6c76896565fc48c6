"""In which order does training read a corpus, and where in it are we?

The sentences of a shard are shuffled and concatenated; the stream is cut into B equal streams; a window is T
consecutive tokens of each. The backward direction reads the whole stream reversed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError


@dataclass(frozen=True)
class Position:
    """The next window to read: `shard` counts in the shuffled order of the epoch."""

    epoch: int = 0
    shard: int = 0
    window: int = 0


@dataclass(frozen=True)
class Window:
    """Token ids uint32 [B, T + 1] for each direction, in its reading order; targets are the inputs shifted by one."""

    ids: dict[str, np.ndarray]
    next: Position
    """The position after this window: what a resumed run goes on from."""


def windows_of(tokens: int, streams: int, window: int) -> int:
    """How many windows a stream of so many tokens gives."""
    return max(0, (tokens // streams - 1) // window)


def windows_per_epoch(corpus: Corpus, streams: int, window: int) -> int:
    """The updates of one epoch; a corpus that gives none is an `InputError`."""
    count = sum(windows_of(shard.tokens, streams, window) for shard in corpus.train)
    if count == 0:
        largest = max(shard.tokens for shard in corpus.train)
        raise InputError(
            f"train.streams={streams} times train.window={window} is more than any shard of {corpus.path} holds "
            f"({largest:,} tokens): use fewer streams, e.g. {max(1, largest // (10 * (window + 1)))}"
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
) -> Iterator[Window]:
    """Windows from `position` on, epoch after epoch, without end.

    Everything random comes from (seed, epoch, shard), so any position can be gone back to.
    """
    while True:
        order = np.random.default_rng([seed, position.epoch]).permutation(len(corpus.train))
        for place in range(position.shard, len(order)):
            shard = corpus.train[order[place]]
            count = windows_of(shard.tokens, streams, window)
            if count > position.window:
                generator = np.random.default_rng([seed, position.epoch, int(order[place])])
                tokens = shuffled_sentences(corpus, shard, generator)
                rows = {direction: cut_streams(tokens, streams, direction) for direction in directions}
                for index in range(position.window, count):
                    last = index == count - 1
                    position = Position(position.epoch, place + 1 if last else place, 0 if last else index + 1)
                    yield Window(
                        {name: window_at(streams_, index, window) for name, streams_ in rows.items()}, position
                    )
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


def shuffled_sentences(corpus: Corpus, shard: Shard, generator: np.random.Generator) -> np.ndarray:
    """uint32 [tokens]: the shard with its sentences in random order."""
    tokens = np.asarray(corpus.read_shard(shard))
    starts = np.flatnonzero(tokens == corpus.begin_id)
    if len(starts) == 0 or starts[0] != 0:
        raise InputError(f"{corpus.path / shard.file} does not start with <s>: build the corpus again")
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


def window_at(rows: np.ndarray, index: int, window: int) -> np.ndarray:
    """[B, T + 1]: the tokens of window `index` and the one after."""
    return rows[:, index * window : (index + 1) * window + 1]
