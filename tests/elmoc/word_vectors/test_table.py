"""Vector tables: read as they were written, and damaged or foreign ones are refused in words."""

from pathlib import Path

import numpy as np
import pytest

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.records import read_json, write_json
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import VectorTable, write_vector_table
from elmoc.word_vectors.transform import TransformKind, VectorTransform, boundary_vectors
from tests.elmoc.test_corpus import LEXICON, write_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(tmp_path / "corpus")


def write_table(
    corpus: Corpus, post_processing: str = "whiten", dtype: str = "float16"
) -> tuple[np.ndarray, VectorTransform]:
    vectors = RandomVectors(seed=3, size=3)
    raw = vectors.lookup(LEXICON)
    kind = TransformKind.parse(post_processing)
    transform = kind.fit(raw, np.ones(len(raw)), boundary_vectors(vectors, 1.0))
    rows = transform.apply(LEXICON, raw).astype(dtype)
    rows[3] = 0
    write_vector_table(corpus, "t", rows=rows, vectors=vectors, transform=transform, post_processing=post_processing)
    return rows, transform


@pytest.mark.parametrize("post_processing", ["none", "centre", "remove-top=1", "whiten"])
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


def test_table_of_another_lexicon(corpus: Corpus) -> None:
    write_table(corpus)
    corpus.lexicon_fingerprint = "0" * 16
    with pytest.raises(InputError, match="another lexicon"):
        VectorTable(corpus, "t")


def test_missing_and_truncated_tables(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="build_vectors"):
        VectorTable(corpus, "t")
    write_table(corpus)
    path = corpus.path / "vectors" / "t.npy"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(InputError, match="truncated"):
        VectorTable(corpus, "t")
    np.save(path, np.zeros((2, 3), dtype=np.float16))
    with pytest.raises(InputError, match="does not have the shape"):
        VectorTable(corpus, "t")
    write_table(corpus)
    path.with_suffix(".post.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="missing or damaged"):
        _ = VectorTable(corpus, "t").transform


@pytest.mark.parametrize(("change", "message"), [({"version": 2}, "version 2"), ({"format": "x"}, "not of the format")])
def test_other_versions_of_tables(corpus: Corpus, change: dict, message: str) -> None:
    write_table(corpus)
    path = corpus.path / "vectors" / "t.json"
    write_json(path, read_json(path) | change)
    with pytest.raises(InputError, match=message):
        VectorTable(corpus, "t")
