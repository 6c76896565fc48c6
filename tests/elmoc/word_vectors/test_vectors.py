"""Are word vectors and vector tables read as they were written, and damaged files refused in words?"""

import gzip
import struct
from pathlib import Path

import fasttext
import numpy as np
import pytest

from data_scripts.train_fasttext import FastTextSettings, train_fasttext
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files import read_json, write_json
from elmoc.word_vectors.fasttext_file import read_header
from elmoc.word_vectors.sources import FastTextVectors, RandomVectors, TextVectors, open_word_vectors
from elmoc.word_vectors.table import VectorTable, write_vector_table
from elmoc.word_vectors.transform import VectorTransform, boundary_vectors, fit_post_processing
from tests.elmoc.test_corpus import LEXICON, write_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(tmp_path / "corpus")


@pytest.fixture(scope="session")
def fasttext_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny trained fastText model: three words and the end of the sentence."""
    folder = tmp_path_factory.mktemp("fasttext")
    settings = FastTextSettings(dim=4, epochs=1, buckets=20, min_count=1, workers=1, seed=0)
    train_fasttext(write_corpus(folder / "corpus"), folder / "v.bin", settings)
    return folder / "v.bin"


# fastText files


def test_header_of_a_fasttext_file(fasttext_file: Path) -> None:
    header = read_header(fasttext_file)
    assert (header.size, header.words, header.buckets) == (4, 4, 20)


def test_fasttext_vectors(fasttext_file: Path) -> None:
    vectors = FastTextVectors(fasttext_file)
    rows = vectors.lookup(["the", "theatre", "the"])
    assert rows.shape == (3, 4)
    assert rows.dtype == np.float32
    model = fasttext.load_model(str(fasttext_file))
    assert np.array_equal(rows, [model.get_word_vector(word) for word in ("the", "theatre", "the")])
    assert rows[0].any()
    assert vectors.fingerprint == FastTextVectors(fasttext_file).fingerprint


@pytest.mark.parametrize("kept", [0, 6, 40, 90, 0.5, 0.999])
def test_truncated_fasttext_files(fasttext_file: Path, tmp_path: Path, kept: float) -> None:
    data = fasttext_file.read_bytes()
    (tmp_path / "v.bin").write_bytes(data[: int(kept * len(data)) if kept < 1 else int(kept)])
    with pytest.raises(InputError, match="truncated"):
        FastTextVectors(tmp_path / "v.bin")


def test_foreign_and_other_versions_of_fasttext_files(fasttext_file: Path, tmp_path: Path) -> None:
    data = fasttext_file.read_bytes()
    for head in (struct.pack("<2i", 793712314, 13), b"PK\3\4____"):
        (tmp_path / "v.bin").write_bytes(head + data[8:])
        with pytest.raises(InputError, match="is not a fastText"):
            FastTextVectors(tmp_path / "v.bin")


# text files


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.vec.gz", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_text_vectors(tmp_path: Path, name: str, header: str) -> None:
    text = f"{header}the 1 2 \n日本 -0.5 1e-3\na b 3 4\nthe 9 9\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    vectors = open_word_vectors(str(path))
    assert vectors.size == 2
    if header:  # without one, the first line says how many numbers there are: a word with a space has to come later
        assert vectors.lookup(["a b"]).tolist() == [[3, 4]]
    assert np.allclose(vectors.lookup(["日本", "nowhere", "the"]), [[-0.5, 1e-3], [0, 0], [1, 2]])
    assert open_word_vectors(str(path), only={"the"}).lookup(["the", "日本"]).tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\ncat 1\n", "line 2: 1 numbers where 2"),
        ("the 1 2\ncat 1 x\n", "line 2: could not convert"),
        ("", "holds no vectors"),
        ("2 2\n", "has 0 vectors where its first line says 2"),
        ("3 2\nthe 1 2\ncat 1 2\n", "has 2 vectors where its first line says 3"),
    ],
)
def test_bad_text_vectors(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "v.vec").write_text(text)
    with pytest.raises(InputError, match=message):
        TextVectors(tmp_path / "v.vec")


def test_random_vectors() -> None:
    vectors = open_word_vectors("random:5:50")
    rows = vectors.lookup(["a", "b", "a", "\ud800"])
    assert np.array_equal(rows[0], rows[2])
    assert abs(float(rows[0] @ rows[1]) / 50) < 0.6
    assert np.array_equal(rows, RandomVectors(seed=5, size=50).lookup(["a", "b", "a", "\ud800"]))
    assert not np.array_equal(rows, RandomVectors(seed=6, size=50).lookup(["a", "b", "a", "\ud800"]))
    many = RandomVectors(seed=1, size=300).lookup([str(number) for number in range(300)])
    assert abs(many.mean()) < 0.02
    assert abs(many.std() - 1) < 0.02


@pytest.mark.parametrize("origin", ["random:1", "random:a:b", "v.pt", "v.bin.gz", "v"])
def test_unknown_origins(origin: str) -> None:
    with pytest.raises(InputError):
        open_word_vectors(origin)


# transforms


def test_post_processing_in_plain_words() -> None:
    generator = np.random.default_rng(0)
    raw = (generator.standard_normal((200, 5)) * [1, 2, 3, 4, 5] + 1).astype(np.float32)
    raw[7] = 0
    counts = generator.integers(0, 9, 200)
    repeated = np.repeat(raw, counts * raw.any(axis=1), axis=0).astype(np.float64)  # each word as often as it occurs
    words = [f"w{row}" for row in range(200)]
    mean, matrix = fit_post_processing("remove-top=2", raw, counts)
    assert mean == pytest.approx(repeated.mean(axis=0), abs=1e-5)
    transform = VectorTransform(boundary=np.ones((2, 5), dtype=np.float32), mean=mean, matrix=matrix)
    top = np.linalg.svd(repeated - repeated.mean(axis=0), full_matrices=False)[2][:2]
    processed = transform.apply(words, raw)
    assert np.abs(processed @ top.T).max() < 1e-4
    assert not processed[7].any()
    _, matrix = fit_post_processing("whiten", raw, counts)
    whitened = (repeated - repeated.mean(axis=0)) @ matrix
    assert whitened.T @ whitened / len(whitened) == pytest.approx(np.eye(5), abs=1e-4)
    assert fit_post_processing("none", raw, counts) == (None, None)
    assert fit_post_processing("centre", raw, counts)[1] is None
    for name in ("remove-top=0", "remove-top=5", "remove-top=x", "whitening", ""):
        with pytest.raises(InputError, match="unknown post-processing"):
            fit_post_processing(name, raw, counts)
    with pytest.raises(InputError, match="zero vector"):
        fit_post_processing("centre", 0 * raw, counts)


def test_boundary_vectors(tmp_path: Path) -> None:
    (tmp_path / "v.vec").write_text("</s> 3 4 0 0\nthe 1 2 3 4\n")
    vectors = TextVectors(tmp_path / "v.vec")
    begin, end = boundary_vectors(vectors, mean_norm=7.0)
    assert end.tolist() == [3, 4, 0, 0]
    assert np.linalg.norm(begin) == pytest.approx(7.0)
    assert np.array_equal(boundary_vectors(vectors, mean_norm=7.0)[0], begin)
    transform = VectorTransform(boundary=np.stack([begin, end]))
    assert np.array_equal(transform.lookup(["<s>", "the", "</s>"], vectors), [begin, [1, 2, 3, 4], end])


# tables


def write_table(
    corpus: Corpus, post_processing: str = "whiten", dtype: str = "float16"
) -> tuple[np.ndarray, VectorTransform]:
    vectors = RandomVectors(seed=3, size=3)
    raw = vectors.lookup(LEXICON)
    mean, matrix = fit_post_processing(post_processing, raw, np.ones(len(raw)))
    transform = VectorTransform(boundary=boundary_vectors(vectors, 1.0), mean=mean, matrix=matrix)
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
    assert (table.size, table.zero_rows, table.origin) == (3, 1, "random:3:3")
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
