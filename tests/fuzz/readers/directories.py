"""Directories of corpora and models: as they are written now, and as they were before there were checksums in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmoc.corpus import BEGIN, END, Corpus
from elmoc.model import ElmoC
from elmoc.model_directory import model_files, read_model_directory
from elmoc.word_vectors.table import VectorTable
from tests.fuzz.mutations.arrays import NPY, SAFETENSORS, ZIP
from tests.fuzz.mutations.json_tree import JSON
from tests.fuzz.mutations.raw import RAW, Mutation
from tests.fuzz.mutations.text import TEXT
from tests.fuzz.readers.reader import Reader, same

Judge = Callable[[Any, Any], bool]
WORDS = ["w1", "w2", "unseen"]


def read_corpus(path: Path) -> dict[str, Any]:
    """All that there is to read in a corpus."""
    corpus = Corpus(path)
    shards = corpus.train + corpus.held_out
    positions = corpus.begin_id, corpus.end_id
    return {
        "boundaries": (*(corpus.lexicon[row] for row in positions), corpus.ids[BEGIN], corpus.ids[END]),
        "words": corpus.lexicon,
        "types": corpus.types,
        "sizes": [(shard.tokens, shard.sentences, shard.documents) for shard in shards],
        "counts": corpus.counts,
        "ids": [corpus.read_shard(shard) for shard in shards],
        "documents": [corpus.read_documents(shard) for shard in shards],
    }


def possible_corpus(result: Any, expected: Any) -> bool:
    """The words are known by their hash; other numbers could be right, if they are possible."""
    known = ("boundaries", "words", "types")
    possible = all((ids < result["types"]).all() for ids in result["ids"]) and (result["counts"] >= 0).all()
    return possible and all(result[name] == expected[name] for name in known)


def read_tables(path: Path) -> list[tuple[Any, ...]]:
    tables = [VectorTable(Corpus(path), name) for name in ("plain", "white")]
    transforms = [table.transform for table in tables]
    return [
        (table.size, table.zero_rows, table.rows, transform.boundary, transform.mean, transform.matrix)
        for table, transform in zip(tables, transforms, strict=True)
    ]


def possible_tables(result: Any, expected: Any) -> bool:
    """Of the right shapes, and finite."""
    pairs = zip(sum(result, ())[2:], sum(expected, ())[2:], strict=True)
    arrays = [(one, other) for one, other in pairs if isinstance(other, np.ndarray)]
    return all(one.shape == other.shape and bool(np.isfinite(one).all()) for one, other in arrays)


def read_model(path: Path) -> tuple[Any, Any]:
    """Layer states, and the output layers, which only training reads; the names of its files are read before."""
    names = model_files(path, with_vectors=True)
    model = read_model_directory(path)
    assert names is not None
    return ElmoC.from_pretrained(path).embed_batch([WORDS])[0], model.output_layer.weights


def possible_model(result: Any, expected: Any) -> bool:
    """Of the right shape, and finite: settings that change no shape are not known to be right."""
    tensors = [result[0], *(result[1] or {}).values()]
    return result[0].shape == expected[0].shape and all(bool(torch.isfinite(each).all()) for each in tensors)


def same_model(result: Any, expected: Any) -> bool:
    """The output layers may be missing: who uses a model has no need of them."""
    return same(result[0], expected[0]) and (result[1] is None or same(result[1], expected[1]))


def readers(
    folder: str,
    read: Callable[[Path], Any],
    files: dict[str, tuple[Mutation, ...]],
    possible: Judge,
    equal: Judge = same,
) -> list[Reader]:
    """Readers of the files of a directory, and of those of an old one.

    A result has to be `equal` to that of the undamaged file where this has a checksum, and else only `possible`. A
    wrong value in one file may be seen in another one first, so that any of them may be named.
    """

    def reader(prefix: str, file: str) -> Reader:
        path = f"{prefix}{folder}"
        return Reader(
            name=f"{prefix}{Path(folder).name}/{Path(file).name}",
            target=f"{path}/{file}",
            mutations=files[file],
            read=lambda sample: read(sample / path),
            right=possible if prefix or file.endswith(".json") else equal,
            names=(f"sample/{path}",),
            share=0.5 if prefix else 1.0,
        )

    return [reader(prefix, file) for prefix in ("", "old/") for file in files]


CORPUS = {
    "corpus.json": JSON,
    "lexicon.txt": TEXT,
    "counts.npy": NPY,
    "shards/train-00000.bin": RAW,
    "shards/train-00000.documents.npy": NPY,
}
TABLES = {"vectors/white.json": JSON, "vectors/white.npy": NPY, "vectors/white.post.npz": ZIP}
MODEL = {"config.json": JSON, "model.safetensors": SAFETENSORS, "heads.safetensors": SAFETENSORS}
READERS = (
    *readers("corpus", read_corpus, CORPUS, possible_corpus),
    *readers("corpus", read_tables, TABLES, possible_tables),
    *readers("run/model", read_model, MODEL, possible_model, same_model),
)
