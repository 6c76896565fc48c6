"""Vector tables: read as they were written, and damaged or foreign ones are refused in words."""

import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.checksums import FileChecksum
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import VectorTable, write_vector_table
from elmoc.word_vectors.transform import VectorTransform, boundary_vectors, fit_transform
from tests.elmoc.test_corpus import LEXICON, write_corpus
from tests.tiny import edit_json


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(tmp_path / "corpus")


def write_table(
    corpus: Corpus, post_processing: str = "whiten", dtype: str = "float16"
) -> tuple[np.ndarray, VectorTransform]:
    vectors = RandomVectors(seed=3, size=3)
    raw = vectors.lookup(LEXICON)
    transform = fit_transform(post_processing, raw, np.ones(len(raw)), boundary_vectors(vectors, 1.0))
    rows = transform.apply(LEXICON, raw).astype(dtype)
    rows[3] = 0
    write_vector_table(corpus, "t", rows=rows, vectors=vectors, transform=transform, post_processing=post_processing)
    return rows, transform


@pytest.mark.parametrize("post_processing", ["none", "centre", "whiten"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_table_written_and_read(corpus: Corpus, post_processing: str, dtype: str) -> None:
    rows, transform = write_table(corpus, post_processing, dtype)
    table = VectorTable(corpus, "t")
    assert np.array_equal(table.rows, rows)
    assert table.rows.dtype == dtype
    assert (table.size, table.zero_rows, table.source.origin) == (3, 1, "random:3:3")
    words = ["<s>", "</s>", "the", "unseen"]
    vectors = RandomVectors(seed=3, size=3)
    assert np.array_equal(table.transform.lookup(words, vectors), transform.lookup(words, vectors))


def keep_checksums(corpus: Corpus) -> None:
    """Write down the checksums of the files as they are now."""
    folder = corpus.path / "vectors"
    sums = {file.name: asdict(FileChecksum.of(file)) for file in folder.glob("t.*np?")}
    edit_json(folder / "t.json", lambda info: info.update(checksums=sums))


def refused(corpus: Corpus, name: str) -> None:
    with pytest.raises(InputError, match=re.escape(name)):
        _ = VectorTable(corpus, "t").transform


def test_table_of_another_lexicon_and_missing_tables(corpus: Corpus) -> None:
    refused(corpus, "t.json")
    write_table(corpus)
    corpus.record = replace(corpus.record, lexicon_fingerprint="0" * 16)
    refused(corpus, "t.json")


def test_truncated_tables_and_flipped_bits(corpus: Corpus) -> None:
    for name in ("t.npy", "t.post.npz"):
        write_table(corpus)
        path = corpus.path / "vectors" / name
        content = path.read_bytes()
        for damaged in (content[:-2], content[:-5] + bytes([content[-5] ^ 1]) + content[-4:], b""):
            path.write_bytes(damaged)
            refused(corpus, name)
    np.save(corpus.path / "vectors/t.npy", np.zeros((2, 3), dtype=np.float16))
    keep_checksums(corpus)
    refused(corpus, "t.npy")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_that_are_not_finite_are_refused(corpus: Corpus, dtype: str) -> None:
    rows, _ = write_table(corpus, "none", dtype)
    rows[4, 2] = -np.inf
    np.save(corpus.path / "vectors/t.npy", rows)
    keep_checksums(corpus)
    refused(corpus, "t.npy")


@pytest.mark.parametrize(
    "change",
    [
        lambda info: info.update(version=1),
        lambda info: info["vectors"].update(size=0),
        lambda info: info.pop("checksums"),
        lambda info: info["vectors"].update(post_processing="bleach"),
    ],
)
def test_a_description_that_does_not_fit(corpus: Corpus, change: Callable[[dict[str, Any]], object]) -> None:
    write_table(corpus)
    edit_json(corpus.path / "vectors/t.json", change)
    refused(corpus, "t.json")
