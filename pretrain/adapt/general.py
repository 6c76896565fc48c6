"""General text: a bounded sample of a corpus directory, written back as text to be mixed with new text."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from elmoc.corpus import Corpus, Shard
from elmoc.files.text import open_text


def write_sample(
    corpus: Corpus,
    shards: Sequence[Shard],
    path: Path,
    *,
    tokens: int,
    weights: Mapping[str, float] = MappingProxyType({}),
) -> int:
    """Write at most about `tokens` tokens of shards as text: of each its beginning, by its size and source's weight.

    Of a shard that is smaller than its part, all is written as many times as that takes; of all shards together no more
    than the tokens that they have. One sentence a line, and a blank line between documents. Returns the tokens,
    sentence boundaries included.
    """
    corpus.require_words()
    weighted = [weights.get(shard.source, 1.0) * shard.tokens for shard in shards]
    share = min(tokens, sum(shard.tokens for shard in shards)) / max(1.0, sum(weighted))
    parts = (
        part for shard, size in zip(shards, weighted, strict=True) for part in repeated(shard, math.ceil(share * size))
    )
    with open_text(path) as file:
        return sum(len(words) + 2 for _, words in corpus.written_sentences(parts, file))


def repeated(shard: Shard, tokens: int) -> Iterator[tuple[Shard, int]]:
    """Parts of a shard that have `tokens` tokens together: all of it, as often as that goes, and a beginning."""
    whole, rest = divmod(tokens, max(1, shard.tokens))
    yield from [(shard, shard.tokens)] * whole
    yield shard, rest
