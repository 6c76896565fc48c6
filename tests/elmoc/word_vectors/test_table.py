"""Vector tables: read as they were written, and damaged or foreign ones are refused in words."""

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import VectorTable, write_vector_table
from elmoc.word_vectors.transform import TransformKind, VectorTransform, boundary_vectors
from tests.elmoc.test_corpus import LEXICON, write_corpus
from tests.tiny import forget_checksums


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


@pytest.mark.parametrize("post_processing", ["none", "centre", "remove-top=1", "whiten", "whiten=0.1"])
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


def edit(corpus: Corpus, change: Callable[[dict[str, Any]], object]) -> None:
    path = corpus.path / "vectors" / "t.json"
    info = json.loads(path.read_text())
    change(info)
    path.write_text(json.dumps(info))


def test_missing_and_truncated_tables(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="build_vectors"):
        VectorTable(corpus, "t")
    write_table(corpus)
    path = corpus.path / "vectors" / "t.npy"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(InputError, match=r"t\.npy is truncated or changed .*: build the table again"):
        VectorTable(corpus, "t")
    forget_checksums(corpus.path / "vectors" / "t.json")
    with pytest.raises(InputError, match=r"t\.npy is truncated or not a \.npy file .*: build the table again"):
        VectorTable(corpus, "t")
    np.save(path, np.zeros((2, 3), dtype=np.float16))
    with pytest.raises(InputError, match=r"t\.npy holds 2 × 3 numbers of type float16, where 6 × 3 of type float16"):
        VectorTable(corpus, "t")


def test_flipped_bits_are_found_when_a_table_is_opened(corpus: Corpus) -> None:
    for name, damaged in (("t.npy", "is damaged"), ("t.post.npz", "is damaged")):
        write_table(corpus)
        path = corpus.path / "vectors" / name
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"{name} {damaged} .*: build the table again"):
            VectorTable(corpus, "t")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_that_are_not_finite_are_refused(corpus: Corpus, number: float, dtype: str) -> None:
    rows, _ = write_table(corpus, "none", dtype)
    rows[4, 2] = number
    np.save(corpus.path / "vectors" / "t.npy", rows)
    forget_checksums(corpus.path / "vectors" / "t.json")
    with pytest.raises(InputError, match=r"t\.npy holds numbers that are not finite: build the table again"):
        VectorTable(corpus, "t")


def test_a_transform_that_is_not_whole_is_refused(corpus: Corpus) -> None:
    write_table(corpus)
    forget_checksums(corpus.path / "vectors" / "t.json")
    path = corpus.path / "vectors" / "t.post.npz"
    mean, matrix = np.ones(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    for arrays in (
        {"mean": mean},
        {"mean": mean, "matrix": matrix[:2]},
        {"mean": mean, "matrix": matrix.astype(np.float64)},
        {"mean": mean, "matrix": matrix, "more": mean},
        {"mean": mean, "matrix": np.zeros(10**6, dtype=np.float32)},
    ):
        np.savez_compressed(path, **arrays)
        with pytest.raises(InputError, match=r"t\.post\.npz is damaged \(.*\): build the table again"):
            _ = VectorTable(corpus, "t").transform
    np.savez(path, mean=mean, matrix=matrix * np.nan)
    with pytest.raises(
        InputError, match=r"t\.post\.npz is damaged \(matrix has numbers that are not finite\): build the"
    ):
        _ = VectorTable(corpus, "t").transform
    path.write_bytes(b"PK")
    with pytest.raises(InputError, match=r"t\.post\.npz is damaged \(.*\): build the table again"):
        _ = VectorTable(corpus, "t").transform
    path.unlink()
    with pytest.raises(InputError, match=r"t\.post\.npz does not exist"):
        _ = VectorTable(corpus, "t").transform


def test_a_table_that_cannot_be_written_leaves_the_old_one(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = write_table(corpus)

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EIO, "the disk failed")

    for function in ("elmoc.word_vectors.table.write_array", "numpy.savez", "elmoc.word_vectors.table.write_record"):
        with monkeypatch.context() as patch:
            patch.setattr(function, fail)
            with pytest.raises(OSError, match="the disk failed"):
                write_table(corpus, "whiten", "float32")
        assert np.array_equal(VectorTable(corpus, "t").rows, rows)
    assert {path.name for path in (corpus.path / "vectors").iterdir()} == {"t.npy", "t.post.npz", "t.json"}


@pytest.mark.parametrize("post_processing", ["none", "centre"])
def test_a_table_that_is_aside_is_read_and_replaced(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, post_processing: str
) -> None:
    write_table(corpus)
    with monkeypatch.context() as patch:  # a file system without links, or a writer that was killed here
        patch.setattr("os.link", Mock(side_effect=OSError(errno.EPERM, "no links")))
        rows, transform = write_table(corpus, post_processing)
    table = VectorTable(corpus, "t")
    assert np.array_equal(table.rows, rows)
    assert np.array_equal(table.transform.boundary, transform.boundary)
    assert {path.name.partition(".")[0] for path in (corpus.path / "vectors").glob("*.np?")} == {"t@new"}
    rows, _ = write_table(corpus)
    assert np.array_equal(VectorTable(corpus, "t").rows, rows)
    assert {path.name for path in (corpus.path / "vectors").iterdir()} == {"t.npy", "t.post.npz", "t.json"}


def test_a_table_without_a_transform_takes_away_the_old_one(corpus: Corpus) -> None:
    write_table(corpus, "whiten")
    write_table(corpus, "none")
    assert VectorTable(corpus, "t").transform.mean is None
    assert not (corpus.path / "vectors" / "t.post.npz").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda info: info.update(version=2), "has version 2 of the format elmoc-vectors, this elmoc reads version 1"),
        (lambda info: info.update(format="x"), "is not of the format elmoc-vectors"),
        (lambda info: info.update(size=0), "size must be at least 1|boundary_vectors must be 2 × 0 numbers"),
        (lambda info: info.update(dtype="int8"), "dtype must be one of float16, float32, not 'int8'"),
        (lambda info: info.update(zero_rows=None), "zero_rows must be of type int, not None"),
        (lambda info: info.pop("origin"), "the field origin is missing"),
        (lambda info: info.update(post_processing="bleach"), "unknown transform 'bleach': choose from none, centre"),
        (lambda info: info["boundary_vectors"].pop(), "boundary_vectors must be 2 × 3 numbers"),
        (lambda info: info["boundary_vectors"][0].pop(), "boundary_vectors must be 2 × 3 numbers"),
        (lambda info: info["boundary_vectors"][1].__setitem__(0, "1"), r"boundary_vectors\[.*must be of type float"),
    ],
)
def test_a_description_that_does_not_fit(
    corpus: Corpus, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    write_table(corpus)
    edit(corpus, change)
    with pytest.raises(InputError, match=rf"t\.json.*{message}.*: .*build the table again"):
        VectorTable(corpus, "t")


def test_boundary_vectors_too_large_for_float32(corpus: Corpus) -> None:
    write_table(corpus, "none")
    edit(corpus, lambda info: info["boundary_vectors"][1].__setitem__(0, 1e39))
    with pytest.raises(InputError, match=r"t\.json: the boundary of the transform holds numbers that are not finite"):
        _ = VectorTable(corpus, "t").transform
