"""General text: a bounded sample of a corpus directory, written back as text to be mixed with new text."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

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
            for sentence, is_first in sentences(corpus, shard, tokens=math.ceil(share * size)):
                file.write(("\n" if is_first else "") + " ".join(sentence) + "\n")
                written += len(sentence) + 2
    return written


def sentences(corpus: Corpus, shard: Shard, *, tokens: int) -> Iterator[tuple[list[str], bool]]:
    """The first sentences of a shard until there are `tokens`, and whether each begins a document."""
    ids = corpus.read_shard(shard)
    documents = set(corpus.read_documents(shard).tolist())
    begins = np.flatnonzero(ids == corpus.begin_id)
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(ids)], strict=True):
        if begin >= tokens:
            break
        words = [corpus.lexicon[row] for row in ids[begin + 1 : end - 1].tolist()]
        if words:
            yield words, begin in documents
