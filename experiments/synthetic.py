"""A made-up corpus, for measurements of speed: random words as frequent as those of
English, random float16 vectors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from elmoc.corpus import BEGIN, END, ID_DTYPE, Corpus, Shard, finish_corpus
from elmoc.files.arrays import save_array
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import write_vector_table
from elmoc.word_vectors.transform import VectorTransform, boundary_vectors

VECTOR_SIZE = 300
DISTINCT_VECTORS = 10_000
# Tokens from `<s>` to `</s>`.
SENTENCE = 25
# Tokens of the held-out text.
HELD_OUT = 2_000
# The frequency of the word of rank r is in proportion to (r + SHIFT)^-EXPONENT. Then,
# of 793,471 types, those from the 4,000th on make 11 % of a text, and those from the
# 40,000th on 3.5 %; in 137 million words of nine kinds of English 14 and 3.2 %.
EXPONENT = 1.4
SHIFT = 20


@contextmanager
def made_up_corpus(types: int, tokens: int, *, tables: set[str]) -> Iterator[Path]:
    """The path of a corpus of `types` word types and about `tokens` tokens while the
    block lasts.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder)
        lexicon = [END, BEGIN, *(f"w{rank}" for rank in range(2, types))]
        generator = np.random.default_rng(0)
        shards = {}
        counts = np.zeros(types, dtype=np.int64)
        (path / "shards").mkdir()
        for name, size in (("train", tokens), ("held-out", HELD_OUT)):
            sentences = -(-size // SENTENCE)
            chances = generator.random((sentences, SENTENCE))
            ids = drawn_ranks(chances, types).astype(ID_DTYPE)
            ids[:, 0] = lexicon.index(BEGIN)
            ids[:, -1] = lexicon.index(END)
            ids.tofile(path / f"shards/{name}.bin")
            # One document, which begins with the first token.
            documents = np.zeros(1, dtype=np.int64)
            save_array(path / f"shards/{name}.documents.npy", documents)
            shards[name] = [Shard(f"shards/{name}.bin", ids.size, sentences, 1)]
            if name == "train":
                counts = np.bincount(ids.ravel(), minlength=types)
        finish_corpus(
            path,
            lexicon=lexicon,
            counts=counts,
            train=shards["train"],
            held_out=shards["held-out"],
            sources=["made up"],
            settings={},
        )
        vectors = RandomVectors(seed=1, size=VECTOR_SIZE)
        boundary = boundary_vectors(vectors, mean_norm=float(np.sqrt(VECTOR_SIZE)))
        # The same vectors again and again: drawing two million takes a minute.
        drawn = generator.standard_normal((DISTINCT_VECTORS, VECTOR_SIZE))
        rows = np.resize(drawn.astype(np.float16), (types, VECTOR_SIZE))
        for name in tables:
            write_vector_table(
                Corpus(path),
                name,
                rows=rows,
                vectors=vectors,
                transform=VectorTransform(boundary),
                post_processing="none",
            )
        yield path


def drawn_ranks(chances: np.ndarray, types: int) -> np.ndarray:
    """The ranks of words, from 2 on, by numbers from 0 to 1: the inverse of the
    distribution function.
    """
    power = 1 - EXPONENT
    most = (2 + SHIFT) ** power
    least = (types + SHIFT) ** power
    ranks = (most - chances * (most - least)) ** (1 / power) - SHIFT
    return ranks.clip(2, types - 1)
