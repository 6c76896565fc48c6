"""General text: a bounded sample of a corpus directory, written back as text to be mixed with new text."""

import math
from collections.abc import Mapping, Sequence
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

    One sentence a line, and a blank line between documents. Returns the tokens, sentence boundaries included.
    """
    corpus.require_words()
    weighted = [weights.get(shard.source, 1.0) * shard.tokens for shard in shards]
    share = tokens / max(1.0, sum(weighted))
    parts = ((shard, math.ceil(share * size)) for shard, size in zip(shards, weighted, strict=True))
    with open_text(path) as file:
        return sum(len(words) + 2 for _, words in corpus.written_sentences(parts, file))
