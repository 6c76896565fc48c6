"""What data scripts do with a full disk: one line, nothing half done; the command runs again, but once."""

from pathlib import Path

import pytest
from elmoc.corpus import Corpus

from data_scripts import build_corpus, build_vectors, tokenize, train_fasttext

RAW = "".join(f"Mr. Smith said: this is sentence {number}. He didn't!\n" for number in range(400))


@pytest.mark.parametrize(
    ("name", "workers", "size"),
    [
        ("tokenize", "1", 8_000),
        ("tokenize.gz", "2", 1_000),
        ("build_corpus", "2", 4_000),
        ("build_vectors", "1", 15_000),  # the rows
        ("build_vectors", "2", 40_000),  # the raw vectors
        ("train_fasttext", "1", 100_000),  # the text
        ("train_fasttext", "1", 180_000),  # the model, by the library
    ],
)
def test_a_full_disk(
    small_corpus: Corpus, small_text: Path, tmp_path: Path, files_of_at_most, error_line, name, workers, size
) -> None:
    (tmp_path / "raw.txt").write_text(RAW)
    corpus, small = str(small_corpus.path), ["--dim", "10", "--epochs", "1", "--buckets", "5000"]
    command, arguments, output = {
        "tokenize": (tokenize.main, [f"{tmp_path}/raw.txt", f"{tmp_path}/text.txt"], "text.txt"),
        "tokenize.gz": (tokenize.main, [f"{tmp_path}/raw.txt", f"{tmp_path}/text.gz"], "text.gz"),
        "build_corpus": (build_corpus.main, [str(small_text), f"{tmp_path}/c"], "c/corpus.json"),
        "build_vectors": (build_vectors.main, [corpus, "random:1:200", "--name", "t"], "corpus/vectors/t.json"),
        "train_fasttext": (train_fasttext.main, [corpus, f"{tmp_path}/v.bin", *small], "v.bin"),
    }[name]
    files_of_at_most(size)
    error_line(command([*arguments, "--workers", workers]))
    files_of_at_most(1 << 40)
    assert not [path for path in tmp_path.rglob("*") if "partial" in path.name or ".lock" in path.name]
    assert not (tmp_path / output).exists()
    assert command([*arguments, "--workers", "1"]) == 0
    error_line(command(arguments))
