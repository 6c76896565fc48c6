"""General text: a bounded sample of a corpus directory, written back as text to be mixed with new text."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from elmoc.corpus import Corpus, Shard
from elmoc.files.writing import atomic_path


def write_sample(
    corpus: Corpus,
    shards: Sequence[Shard],
    path: Path,
    *,
    tokens: int,
    weights: Mapping[str, float] = MappingProxyType({}),
) -> int:
    """Write at most about `tokens` tokens of shards as text: of each its beginning, by its size and source's weight.

    One sentence a line, and a blank line before every document. Returns the tokens, sentence boundaries included.
    """
    corpus.require_words()
    weighted = [weights.get(shard.source, 1.0) * shard.tokens for shard in shards]
    share = tokens / max(1.0, sum(weighted))
    written = 0
    with atomic_path(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        for shard, size in zip(shards, weighted, strict=True):
            for sentence, is_first in corpus.sentences(shard, tokens=math.ceil(share * size)):
                file.write(("\n" if is_first else "") + " ".join(sentence) + "\n")
                written += len(sentence) + 2
    return written
