"""Synthetic corpus: random text and word vectors, for a benchmark without a corpus of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from elmoc.corpus import BEGIN, END, ID_DTYPE, Corpus, Shard, finish_corpus
from elmoc.devices import free_memory
from elmoc.errors import InputError
from elmoc.files.arrays import save_array
from elmoc.files.writing import human_bytes, require_space
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import write_vector_table
from elmoc.word_vectors.transform import VectorTransform, boundary_vectors
from pretrain.config import DataConfig

TYPES = 200_000
VECTOR_SIZE = 300
TOKENS = 1_000_000
SENTENCE = 25
"""Tokens from `<s>` to `</s>`."""
HELD_OUT = 2_000
EXPONENT, SHIFT = 1.4, 20
"""Of frequencies: of 793,471 types those from the 4,000th on make 11 % of a text, from the 40,000th on 3.5 %, from the
200,000th on 1.1 %. In 137 million words of nine kinds of English these were 14, 3.2 and 0.9 %."""
BYTES_OF_A_TOKEN = 24
"""Of memory, while it is drawn: two numbers of 64 bits, the id, and what is counted."""
BYTES_OF_A_NUMBER = 6
"""Of a vector, in memory, while they are drawn; a corpus has two tables of half of that on disk."""


@contextmanager
def corpus_for(data: DataConfig, tokens: int, *, types: int = TYPES) -> Iterator[str]:
    """The path of the corpus of `data`, or of a synthetic one of at least `tokens` tokens while the block lasts.

    `types` are the word types of the synthetic one.
    """
    if data.corpus:
        yield data.corpus
        return
    needed = BYTES_OF_A_TOKEN * tokens + BYTES_OF_A_NUMBER * types * VECTOR_SIZE
    free = free_memory(torch.device("cpu"))
    if needed > free:
        raise InputError(
            f"a synthetic corpus of {tokens:,} tokens and {types:,} types needs about {human_bytes(needed)} of memory, "
            f"and there are {human_bytes(free)} free: use fewer streams"
        )
    with TemporaryDirectory() as folder:
        require_space(folder, BYTES_OF_A_NUMBER * types * VECTOR_SIZE)
        write_synthetic_corpus(Path(folder), data, max(tokens, TOKENS), types=types)
        yield folder


def write_synthetic_corpus(path: Path, data: DataConfig, tokens: int, *, types: int = TYPES) -> None:
    """A corpus of random words as frequent as those of text, with the random float16 tables that `data` names.

    The frequency of the word of rank r is in proportion to (r + SHIFT)^−EXPONENT.
    """
    lexicon = [END, BEGIN, *(f"w{rank}" for rank in range(2, types))]
    generator = np.random.default_rng(0)
    shards, counts = {}, {}
    (path / "shards").mkdir()
    for name, size in (("train", tokens), ("held-out", HELD_OUT)):
        sentences = -(-size // SENTENCE)
        most, least = ((rank + SHIFT) ** (1 - EXPONENT) for rank in (2, types))
        chances = generator.random((sentences, SENTENCE))
        ranks = (most - chances * (most - least)) ** (1 / (1 - EXPONENT)) - SHIFT  # from 2 to the number of types
        ids = ranks.clip(2, types - 1).astype(ID_DTYPE)
        ids[:, 0], ids[:, -1] = lexicon.index(BEGIN), lexicon.index(END)
        ids.tofile(path / f"shards/{name}.bin")
        save_array(path / f"shards/{name}.documents.npy", np.zeros(1, dtype=np.int64))
        shards[name] = [Shard(f"shards/{name}.bin", ids.size, sentences, 1)]
        counts[name] = np.bincount(ids.ravel(), minlength=types)
    finish_corpus(
        path,
        lexicon=lexicon,
        counts=counts["train"],
        train=shards["train"],
        held_out=shards["held-out"],
        sources=["synthetic"],
        settings={},
    )
    vectors = RandomVectors(seed=1, size=VECTOR_SIZE)
    transform = VectorTransform(boundary=boundary_vectors(vectors, mean_norm=float(np.sqrt(VECTOR_SIZE))))
    rows = transform.lookup(lexicon, vectors).astype(np.float16)
    for name in {data.input_vectors, data.target_vectors}:
        write_vector_table(Corpus(path), name, rows=rows, vectors=vectors, transform=transform, post_processing="none")
