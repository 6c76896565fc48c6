"""The bytes of small fastText files of every kind that the library writes, and places of the numbers in them."""

import struct
from collections.abc import Sequence

import numpy as np

DIM = 5
WORDS = ("</s>", "the", "cat", "theatre")
# Offset and type of each number of a header.
FIELDS = {
    **{
        name: (8 + 4 * place, "<i")
        for place, name in enumerate(
            ("dim", "ws", "epoch", "min_count", "neg", "word_ngrams", "loss", "model", "bucket", "minn", "maxn", "rate")
        )
    },
    "t": (56, "<d"),
    "entries": (64, "<i"),
    "words": (68, "<i"),
    "labels": (72, "<i"),
    "tokens": (76, "<q"),
    "pruned": (84, "<q"),
}
SKIP_GRAM, SUPERVISED = 2, 3
TREE, SOFTMAX = 1, 3  # sampling takes longer to load


def fasttext_bytes(
    *,
    model: int = SKIP_GRAM,
    loss: int = SOFTMAX,
    labels: Sequence[str] = (),
    bucket: int = 20,
    subwords: tuple[int, int] = (3, 6),
    words: Sequence[str | bytes] = WORDS,
    dim: int = DIM,
    version: int = 12,
) -> bytes:
    """A whole file."""
    generator = np.random.default_rng(0)
    arguments = (dim, 5, 5, 1, 5, 1, loss, model, bucket, *subwords, 100, 1e-4)
    content = struct.pack("<2i12id", 793712314, version, *arguments)
    entries = [entry.encode() if isinstance(entry, str) else entry for entry in (*words, *labels)]
    content += struct.pack("<3i2q", len(entries), len(words), len(labels), 1000, -1)
    content += b"".join(
        entry + b"\0" + struct.pack("<qb", max(1, 100 - index), index >= len(words))
        for index, entry in enumerate(entries)
    )
    for rows in (len(words) + bucket, len(labels) if model == SUPERVISED else len(words)):
        numbers = generator.standard_normal((rows, dim), np.float32)
        content += struct.pack("<B2q", 0, rows, dim) + numbers.tobytes()
    return content


LABELS = ("__label__a", "__label__b")
KINDS = {
    "skip-gram": fasttext_bytes(),
    "tree": fasttext_bytes(loss=TREE),
    "words alone": fasttext_bytes(bucket=0, subwords=(0, 0)),
    "labels": fasttext_bytes(labels=LABELS),
    "classifier": fasttext_bytes(model=SUPERVISED, labels=LABELS, bucket=0, subwords=(0, 0)),
}
