"""The bytes of small fastText files of every kind that the library writes, and places of the numbers in them."""

import struct
from collections.abc import Sequence

import numpy as np

DIM = 5
WORDS = ("</s>", "the", "cat", "theatre")
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
"""Offset and type of each number of a header."""
SKIP_GRAM, SUPERVISED = 2, 3
TREE, SOFTMAX = 1, 3  # sampling takes longer to load


def fasttext_bytes(
    *,
    model: int = SKIP_GRAM,
    loss: int = SOFTMAX,
    labels: Sequence[str] = (),
    bucket: int = 20,
    subwords: tuple[int, int] = (3, 6),
    pruned: int = -1,
    quantised: bool = False,
    norms: bool = False,
    quantised_output: bool = False,
    words: Sequence[str | bytes] = WORDS,
    dim: int = DIM,
    version: int = 12,
) -> bytes:
    """A whole file; `pruned` buckets are left of a dictionary, −1 for one that is not pruned."""
    generator = np.random.default_rng(0)
    arguments = (dim, 5, 5, 1, 5, 1, loss, model, bucket, *subwords, 100, 1e-4)
    head = struct.pack("<2i12id", 793712314, version, *arguments)
    entries = [entry.encode() if isinstance(entry, str) else entry for entry in (*words, *labels)]
    head += struct.pack("<3i2q", len(entries), len(words), len(labels), 1000, pruned)
    for index, entry in enumerate(entries):
        head += entry + b"\0" + struct.pack("<qb", max(1, 100 - index), index >= len(words))
    for new in range(max(0, pruned)):
        head += struct.pack("<2i", 2 * new, new)
    inputs = len(words) + (bucket if pruned < 0 else pruned)
    outputs = len(labels) if model == SUPERVISED else len(words)
    return b"".join(
        (
            head,
            struct.pack("<B", quantised),
            matrix(generator, inputs, dim, quantised, norms),
            struct.pack("<B", quantised_output),
            matrix(generator, outputs, dim, quantised_output, norms),
        )
    )


def matrix(generator: np.random.Generator, rows: int, dim: int, quantised: bool, norms: bool) -> bytes:
    if not quantised:
        return struct.pack("<2q", rows, dim) + generator.standard_normal((rows, dim), np.float32).tobytes()
    parts = (dim + 1) // 2
    whole = struct.pack("<B2qi", norms, rows, dim, rows * parts) + generator.bytes(rows * parts)
    whole += struct.pack("<4i", dim, parts, 2, dim % 2 or 2)
    whole += generator.standard_normal(256 * dim, np.float32).tobytes()
    if norms:
        whole += generator.bytes(rows) + struct.pack("<4i", 1, 1, 1, 1)
        whole += generator.standard_normal(256, np.float32).tobytes()
    return whole


LABELS = ("__label__a", "__label__b")
KINDS = {
    "skip-gram": fasttext_bytes(),
    "tree": fasttext_bytes(loss=TREE),
    "words alone": fasttext_bytes(bucket=0, subwords=(0, 0)),
    "labels": fasttext_bytes(labels=LABELS),
    "classifier": fasttext_bytes(model=SUPERVISED, labels=LABELS, bucket=0, subwords=(0, 0)),
    "quantised": fasttext_bytes(model=SUPERVISED, loss=TREE, labels=LABELS, quantised=True),
    "quantised whole": fasttext_bytes(
        model=SUPERVISED, labels=LABELS, pruned=7, quantised=True, norms=True, quantised_output=True
    ),
    "pruned whole": fasttext_bytes(model=SUPERVISED, labels=LABELS, pruned=0, quantised=True, norms=True),
}
