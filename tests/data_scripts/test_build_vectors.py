"""`build_vectors`: writes the transformed vectors of the lexicon, and refuses what cannot be a table."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from data_scripts.build_vectors import main
from data_scripts.corpus import CorpusOptions, make_corpus
from elmoc.corpus import Corpus
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import VectorTable
from elmoc.word_vectors.transform import VectorTransform
from tests.tiny import tiny_model


def write_vectors(path: Path, words: list[str], size: int = 8, scale: float = 1.0) -> np.ndarray:
    """A text file of vectors with a common direction; returns them."""
    generator = np.random.default_rng(3)
    rows = (generator.standard_normal((len(words), size)) * np.arange(1, size + 1) + 2).astype(np.float32) * scale
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True)))
    return rows


def words_of(corpus: Corpus) -> list[str]:
    return [word for word in corpus.lexicon if word not in ("<s>", "</s>")]


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_are_the_lexicon_in_order(small_corpus: Corpus, workers: str, dtype: str) -> None:
    command = [str(small_corpus.path), "random:7:12", "--name", "t", "--workers", workers, "--dtype", dtype]
    assert main(command) == 0
    table = VectorTable(small_corpus, "t")
    assert table.rows.dtype == dtype
    assert np.array_equal(table.rows, RandomVectors(seed=7, size=12).lookup(small_corpus.lexicon).astype(dtype))
    assert sorted(path.name for path in table.path.parent.iterdir()) == ["t.json", "t.json.xxh3", "t.npy", "t.post.npz"]


def test_words_without_a_vector(small_corpus: Corpus, tmp_path: Path, capfd) -> None:
    words = words_of(small_corpus)
    rows = write_vectors(tmp_path / "v.txt", words[::2])
    assert main([str(small_corpus.path), str(tmp_path / "v.txt"), "--name", "t", "--dtype", "float32"]) == 0
    table = VectorTable(small_corpus, "t")
    assert table.zero_rows == len(words[1::2])
    assert not table.rows[[small_corpus.ids[word] for word in words[1::2]]].any()
    assert np.array_equal(table.rows[[small_corpus.ids[word] for word in words[::2]]], rows)
    boundary = table.rows[[small_corpus.begin_id, small_corpus.record.end_id]]
    mean_norm = np.linalg.norm(rows, axis=1).mean()
    assert np.linalg.norm(boundary, axis=1) == pytest.approx([mean_norm, mean_norm], rel=1e-5)
    assert f"{len(words[1::2])} zero rows" in capfd.readouterr().out


def test_the_transform_is_fitted_to_the_words_by_count(small_corpus: Corpus, tmp_path: Path) -> None:
    words = words_of(small_corpus)
    write_vectors(tmp_path / "v.txt", words)
    command = [str(small_corpus.path), str(tmp_path / "v.txt"), "--name", "t", "--dtype", "float32"]
    assert main([*command, "--post-process", "whiten"]) == 0
    table = VectorTable(small_corpus, "t")
    places = [small_corpus.ids[word] for word in words]
    rows, counts = table.rows[places].astype(np.float64), small_corpus.counts[places]
    assert np.average(rows, axis=0, weights=counts) == pytest.approx(np.zeros(8), abs=1e-5)
    assert np.cov(rows.T, fweights=counts, bias=True) == pytest.approx(np.eye(8), abs=1e-4)
    boundary = table.rows[[small_corpus.begin_id, small_corpus.record.end_id]]
    assert np.array_equal(table.transform.lookup(["<s>", "</s>"], open_word_vectors(table.source.origin)), boundary)


def test_too_large_for_float16(small_corpus: Corpus, tmp_path: Path, capfd) -> None:
    write_vectors(tmp_path / "v.vec", words_of(small_corpus), scale=1e5)
    command = [str(small_corpus.path), str(tmp_path / "v.vec"), "--name", "t"]
    assert main(command) == 1
    assert "float16" in capfd.readouterr().err.splitlines()[-1]
    assert list((small_corpus.path / "vectors").iterdir()) == []
    assert main([*command, "--dtype", "float32"]) == 0


@pytest.mark.parametrize(
    ("vectors", "options", "named"),
    [
        ("random:1:4", ["--post-process", "remove-top=4"], "remove-top=4"),
        ("nan.txt", [], "not finite"),
        ("random:1:4", ["--name", "../t"], "--name is '../t'"),
        ("foreign.txt", ["--post-process", "centre"], "zero vector"),
    ],
)
def test_bad_arguments(small_corpus: Corpus, tmp_path: Path, monkeypatch, error_line, vectors, options, named) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nan.txt").write_text(f"{words_of(small_corpus)[3]} 1 nan 2\n")
    Path("foreign.txt").write_text("elsewhere 1 2 3\n")
    command = [str(small_corpus.path), vectors, "--name", "t", "--workers", "1", *options]
    assert named in error_line(main(command))
    assert not list(small_corpus.path.glob("vectors/*"))


def test_with_like_the_models_transform_is_used(small_corpus: Corpus, tmp_path: Path, error_line) -> None:
    model = tiny_model()
    generator = np.random.default_rng(2)
    transform = VectorTransform(
        boundary=generator.standard_normal((2, 6), dtype=np.float32),
        mean=generator.standard_normal(6, dtype=np.float32),
        matrix=generator.standard_normal((6, 6), dtype=np.float32),
    )
    model.transform = transform
    model.word_vectors = type(model.word_vectors)("random:3:6", "random:3:6", 6, "whiten")
    write_model_directory(tmp_path / "model", model)
    like = ["--name", "input", "--dtype", "float32", "--like", str(tmp_path / "model")]
    assert "random:4:6" in error_line(main([str(small_corpus.path), "random:4:6", *like]))
    assert not list((small_corpus.path / "vectors").glob("*.json"))
    assert main([str(small_corpus.path), "random:3:6", *like]) == 0
    table = VectorTable(small_corpus, "input")
    assert table.transform.same_as(transform)
    assert table.source.post_processing == "whiten"
    expected = transform.lookup(small_corpus.lexicon, RandomVectors(seed=3, size=6))
    np.testing.assert_allclose(table.rows, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("of_text", "of_vectors", "vectors", "warned"),
    [
        ("NFD", "NFC", "{}/v.vec", "normal form NFC"),
        ("NFD", "NFC", "random:1:4", "normal form NFC"),
        ("NFC", "NFD", "{}/v.vec", "no vector in"),
        ("NFC", "NFC", "{}/v.vec", ""),
    ],
)
def test_another_normal_form_is_told(
    tmp_path: Path, capfd, of_text: str, of_vectors: str, vectors: str, warned: str
) -> None:
    words = ["Grüße", "über", "Köln", "dürften", "Bäume", "hören", "und", "sagen"]
    write_vectors(tmp_path / "v.vec", [unicodedata.normalize(of_vectors, word) for word in words])
    (tmp_path / "text").write_text(unicodedata.normalize(of_text, f"{' '.join(words)}\n" * 90))
    make_corpus(tmp_path / "text", tmp_path / "corpus", CorpusOptions(workers=1))
    assert main([str(tmp_path / "corpus"), vectors.format(tmp_path), "--name", "t", "--workers", "1"]) == 0
    warnings = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(warnings) == bool(warned)
    assert warned in "".join(warnings)
