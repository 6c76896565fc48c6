"""Reading: the training windows of a corpus whose shards are shuffled one by one, and how many an epoch has."""

from collections.abc import Iterator

from elmoc.corpus import Corpus
from pretrain.data.windows import Position, TextGroups, Window, training_windows, windows_per_epoch

from elmoc.encoders import DIRECTIONS

BEGIN = Position()


def windows_of_shards(
    corpus: Corpus,
    streams: int,
    window: int,
    *,
    seed: int = 1,
    directions: tuple[str, ...] = DIRECTIONS,
    position: Position = BEGIN,
) -> Iterator[Window]:
    """The windows from a position on, without end."""
    groups = TextGroups(corpus, {}, mix=1, seed=seed)
    options = {"order": "sentences", "directions": directions, "position": position}
    return training_windows(groups, streams=streams, window=window, **options)


def updates_of_epoch(corpus: Corpus, streams: int, window: int) -> int:
    """How many windows an epoch has."""
    return windows_per_epoch(TextGroups(corpus, {}, mix=1, seed=0), streams=streams, window=window)
