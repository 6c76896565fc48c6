"""General text: a bounded sample of a corpus directory, written back as text to be mixed with new text."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from elmoc.corpus import Corpus, Shard
from elmoc.files.writing import atomic_path


def write_sample(corpus: Corpus, shards: Sequence[Shard], path: Path, *, tokens: int) -> int:
    """Write about `tokens` tokens of shards as text: of each shard its beginning, in proportion to its size.

    One sentence a line, and a blank line before every document. Returns the tokens, sentence boundaries included.
    """
    share = min(1.0, tokens / max(1, sum(shard.tokens for shard in shards)))
    written = 0
    with atomic_path(path) as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        for shard in shards:
            for sentence, is_first in sentences(corpus, shard, tokens=max(1, round(share * shard.tokens))):
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
