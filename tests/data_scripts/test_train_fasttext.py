"""`train_fasttext`: trains on the training shards alone, says what is wrong, and leaves nothing behind."""

import os
import signal
from pathlib import Path

import fasttext
import numpy as np
import pytest

from data_scripts import train_fasttext as module
from data_scripts.train_fasttext import (
    FastTextSettings,
    buckets_for,
    count_words,
    epochs_for,
    main,
    min_count_for,
    model_size,
    write_text,
)
from elmoc.corpus import Corpus
from elmoc.word_vectors.fasttext.vectors import FastTextVectors

SMALL = ["--dim", "10", "--epochs", "3", "--buckets", "1000", "--workers", "1"]


def test_text_is_the_training_text(small_corpus: Corpus, small_text: Path, tmp_path: Path) -> None:
    write_text(small_corpus, tmp_path / "text")
    lines = [line.split() for line in (tmp_path / "text").read_text().splitlines()]
    trained = sum(shard.sentences for shard in small_corpus.train)
    assert [line for line in lines if line] == [line.split() for line in small_text.read_text().splitlines()][:trained]


def test_trains_vectors_that_know_the_topics(small_corpus: Corpus, tmp_path: Path) -> None:
    output = tmp_path / "out" / "v.bin"
    assert main([str(small_corpus.path), str(output), *SMALL, "--epochs", "10"]) == 0
    assert [path.name for path in output.parent.iterdir()] == ["v.bin"]
    vectors = FastTextVectors(output)
    rows = vectors.lookup([f"{name}{number}" for name in ("sea", "town") for number in range(30)])
    assert vectors.size == 10
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


def test_little_text_is_warned_of_and_a_log_has_no_progress(
    small_corpus: Corpus, tmp_path: Path, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = count_words(small_corpus)
    assert main([str(small_corpus.path), str(tmp_path / "a.bin"), *SMALL]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["warning"]
    assert f"vectors of only {words:,} words of text are poor" in lines[0]
    monkeypatch.setattr(module, "_LITTLE_TEXT", words)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main([str(small_corpus.path), str(tmp_path / "b.bin"), *SMALL]) == 0
    error = capfd.readouterr().err
    assert "Progress: 100" in error
    assert "warning" not in error


@pytest.mark.parametrize("min_count", [1, 380])
def test_the_size_of_the_file_is_known_before(small_corpus: Corpus, tmp_path: Path, capfd, min_count: int) -> None:
    assert main([str(small_corpus.path), str(tmp_path / "v.bin"), *SMALL, "--min-count", str(min_count)]) == 0
    words = fasttext.load_model(str(tmp_path / "v.bin")).get_words()
    assert "</s>" in words
    assert f", {len(words) - 1} of 62 types occur at least {min_count} times;" in capfd.readouterr().out
    settings = FastTextSettings(seed=0, dim=10, epochs=3, buckets=1000, min_count=min_count)
    size = model_size(np.array([len(word) for word in words]), settings)
    assert (tmp_path / "v.bin").stat().st_size == size


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_a_model_that_is_not_whole_gets_no_name(
    small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line, kept: int
) -> None:
    real = module._train_in_child

    def truncated(text: Path, model: Path, settings: FastTextSettings) -> None:
        real(text, model, settings)
        model.write_bytes(model.read_bytes()[:kept])

    monkeypatch.setattr(module, "_train_in_child", truncated)
    (tmp_path / "o").mkdir()
    error = error_line(main([str(small_corpus.path), str(tmp_path / "o" / "v.bin"), *SMALL]))
    assert "v.bin" in error
    assert not list((tmp_path / "o").iterdir())


def test_a_child_that_dies_is_one_sentence(
    small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line
) -> None:
    monkeypatch.setattr(module, "zero_fresh_memory", lambda: os.kill(os.getpid(), signal.SIGKILL))
    error = error_line(main([str(small_corpus.path), str(tmp_path / "v.bin"), *SMALL]))
    assert error == (
        "error: fastText was killed, probably because memory ran out: give fewer --buckets, or a smaller --dim"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learning-rate", "1000"], "diverged"),
        (["--buckets", "0"], "--buckets must be above 0 and at most 2147483647, not 0"),
        (["--dim", "-1"], "--dim must be above 0 and at most 65536, not -1"),
        (["--dim", "70000"], "--dim must be above 0 and at most 65536, not 70000"),  # such a file cannot be opened
        (["--min-count", "100000"], "smaller --min-count"),
    ],
)
def test_bad_settings(small_corpus: Corpus, tmp_path: Path, capfd, options: list[str], message: str) -> None:
    (tmp_path / "o").mkdir()
    assert main([str(small_corpus.path), str(tmp_path / "o" / "v.bin"), *SMALL, *options]) == 1
    assert message in capfd.readouterr().err.splitlines()[-1]
    assert list((tmp_path / "o").iterdir()) == []


def test_outputs_are_never_overwritten(small_corpus: Corpus, tmp_path: Path, capfd) -> None:
    (tmp_path / "v.bin").write_text("mine")
    assert main([str(small_corpus.path), str(tmp_path / "v.bin")]) == 1
    assert "exists already" in capfd.readouterr().err
    assert (tmp_path / "v.bin").read_text() == "mine"
    assert main([str(small_corpus.path), str(tmp_path / "v.vec")]) == 1
    assert "ends in .bin" in capfd.readouterr().err
    assert main([str(tmp_path / "nothing"), str(tmp_path / "w.bin")]) == 1
    assert "not a finished corpus" in capfd.readouterr().err


def test_sizes_follow_the_corpus() -> None:
    assert [epochs_for(words) for words in (0, 10**6, 5 * 10**6, 25 * 10**6, 10**9)] == [5, 5, 3, 1, 1]
    assert [min_count_for(words) for words in (0, 2 * 10**6, 2 * 10**6 + 1)] == [2, 2, 5]
    assert [buckets_for(words) for words in (0, 10**6, 25 * 10**6, 10**9)] == [50_000, 100_000, 500_000, 2_000_000]
