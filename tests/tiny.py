"""Tiny corpora, vector tables and models that the tests build."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from elmoc.corpus import BEGIN, END, ID_DTYPE, Corpus, Shard, finish_corpus
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig, direction_name
from elmoc.encoders.lstm import LstmSizes
from elmoc.files.arrays import save_array
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.word_vectors.sources import RandomVectors, VectorSource, WordVectors
from elmoc.word_vectors.table import write_vector_table
from elmoc.word_vectors.transform import VectorTransform, boundary_vectors

from elmoc.encoders import DIRECTIONS

Sentences = list[list[str]]


def learnable_sentences(count: int, seed: int) -> Sentences:
    """Sentences in which every word but the first follows from the one before it, and its predecessor from it."""
    generator = random.Random(seed)
    return [
        [f"w{(first + step) % 20}" for step in range(generator.randint(3, 9))]
        for first in (generator.randrange(20) for _ in range(count))
    ]


def write_corpus(
    path: Path,
    train: Sequence[Sentences],
    held_out: Sequence[Sentences],
    *,
    sources: Sequence[str] = (),
    documents: int = 10**9,
) -> Corpus:
    """A corpus directory with a shard for each list of sentences; a document starts every `documents` sentences.

    `sources` are those of all shards, training shards first.
    """
    names = iter(sources or [""] * (len(train) + len(held_out)))
    streams = {
        split: [[word for sentence in shard for word in (BEGIN, *sentence, END)] for shard in shards]
        for split, shards in (("train", train), ("held_out", held_out))
    }
    counts = Counter(word for stream in streams["train"] for word in stream)
    counts.update(dict.fromkeys((word for stream in streams["held_out"] for word in stream), 0))
    lexicon = sorted(counts, key=lambda word: (-counts[word], word))
    ids = {word: row for row, word in enumerate(lexicon)}
    (path / "shards").mkdir(parents=True)
    shards: dict[str, list[Shard]] = {"train": [], "held_out": []}
    for split, contents in streams.items():
        for number, stream in enumerate(contents):
            file = f"shards/{split}-{number}.bin"
            np.array([ids[word] for word in stream], dtype=ID_DTYPE).tofile(path / file)
            starts = [place for place, word in enumerate(stream) if word == BEGIN][::documents]
            save_array((path / file).with_suffix(".documents.npy"), np.array(starts, dtype=np.int64))
            shards[split].append(Shard(file, len(stream), stream.count(BEGIN), len(starts), next(names)))
    finish_corpus(
        path,
        lexicon=lexicon,
        counts=np.array([counts[word] for word in lexicon]),
        train=shards["train"],
        held_out=shards["held_out"],
        sources=["tests"],
        settings={"made_by": "tests"},
    )
    return Corpus(path)


def add_table(
    corpus: Corpus, name: str, vectors: WordVectors, *, dtype: str = "float32", zero: Sequence[str] = ()
) -> np.ndarray:
    """A vector table of the corpus; the words `zero` have no vector. Returns its rows."""
    transform = VectorTransform(boundary=boundary_vectors(vectors, mean_norm=2.0))
    rows = transform.lookup(corpus.lexicon, vectors).astype(dtype)
    rows[[corpus.ids[word] for word in zero]] = 0
    write_vector_table(corpus, name, rows=rows, vectors=vectors, transform=transform, post_processing="none")
    return rows


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")


def forget_checksums(description: Path) -> None:
    """Make a corpus (by its `corpus.json`), a table (`NAME.json`) or a model (`config.json`) one without checksums."""
    edit_json(description, lambda record: record.update(checksums={}))


def tiny_model(*, directions: tuple[str, ...] = DIRECTIONS, vectors: WordVectors | None = None) -> ModelDirectory:
    """A model with random weights throughout (norms and biases, too); it reads `random:3:6` unless told otherwise."""
    vectors = vectors or RandomVectors(seed=3, size=6)
    config = EncoderConfig(LstmSizes(projection_size=5, cell_size=7, layers=2), word_vector_size=vectors.size)
    source = VectorSource.of(vectors, "none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        encoder = BidirectionalEncoder(config, directions=directions)
        weights = {
            f"{direction_name(direction)}.{name}": tensor
            for direction in directions
            for name, tensor in torch.nn.Linear(5, vectors.size).state_dict().items()
        }
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return ModelDirectory(
        encoder=encoder,
        output_layer=OutputLayerRecord({"kind": "continuous", **asdict(source)}, weights),
        transform=VectorTransform(boundary=boundary_vectors(vectors, mean_norm=2.0)),
        word_vectors=source,
        training={"updates": 0},
    )
