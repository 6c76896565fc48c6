"""`train_fasttext`: trains on the training shards alone, says what is wrong, and leaves nothing behind."""

from pathlib import Path

import numpy as np
from data_scripts.train_fasttext import main, sizes_for
from elmoc.corpus import Corpus
from elmoc.word_vectors.fasttext import FastTextVectors

SMALL = ["--dim", "10", "--epochs", "3", "--buckets", "1000", "--workers", "1"]


def test_trains_vectors_that_know_the_topics(small_corpus: Corpus, tmp_path: Path) -> None:
    output = tmp_path / "out" / "v.bin"
    assert main([str(small_corpus.path), str(output), *SMALL, "--epochs", "10", "--maxn", "5"]) == 0
    assert sorted(path.name for path in output.parent.iterdir()) == ["v.bin", "v.bin.xxh3"]
    vectors = FastTextVectors(output)
    rows = vectors.lookup([f"{name}{number}" for name in ("sea", "town") for number in range(30)])
    assert (vectors.size, vectors.header.minn, vectors.header.maxn) == (10, 3, 5)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    assert cosines[:30, :30].mean() > cosines[:30, 30:].mean() + 0.3


def test_one_worker_repeats_itself_and_the_seed_matters(small_corpus: Corpus, tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        garbage = [np.full(1000 * (size + ord(name)), 1e30, dtype=np.float32) for size in range(100)]
        del garbage  # what fastText does not initialise is full of this
        assert main([str(small_corpus.path), str(tmp_path / f"{name}.bin"), *SMALL, "--seed", seed]) == 0
    rows = {name: FastTextVectors(tmp_path / f"{name}.bin").lookup(["sea1", "unseen"]) for name in "abc"}
    assert np.array_equal(rows["a"], rows["b"])
    assert not np.array_equal(rows["a"], rows["c"])


def test_outputs_are_never_overwritten(small_corpus: Corpus, tmp_path: Path, error_line) -> None:
    (tmp_path / "v.bin").write_text("mine")
    for corpus, output in ((small_corpus.path, "v.bin"), (small_corpus.path, "v.vec"), (tmp_path / "none", "w.bin")):
        error_line(main([str(corpus), str(tmp_path / output)]))
    assert (tmp_path / "v.bin").read_text() == "mine"
    rare = [*SMALL, "--min-count", "100000"]
    assert "--min-count" in error_line(main([str(small_corpus.path), str(tmp_path / "w.bin"), *rare]))


def test_sizes_follow_the_corpus() -> None:
    sizes = [sizes_for(words) for words in (0, 10**6, 5 * 10**6, 25 * 10**6, 10**9)]
    assert [each["epoch"] for each in sizes] == [5, 5, 5, 2, 1]
    assert [each["bucket"] for each in sizes] == [50_000, 100_000, 224_000, 500_000, 2_000_000]
    assert [each["minCount"] for each in sizes] == [2, 2, 5, 5, 5]
