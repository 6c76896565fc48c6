"""What every command of the data scripts does with a second writer, a kill and a full disk."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from data_scripts import build_corpus, build_vectors, tokenize, train_fasttext
from elmoc.corpus import Corpus
from tests.data_scripts.test_parts import runs

RAW = "".join(f"Mr. Smith said: this is sentence {number}. He didn't!\n" for number in range(400))


class Commands:
    """The commands that write, each with small inputs: how it is run, and the path that it locks."""

    def __init__(self, folder: Path, corpus: Corpus, text: Path) -> None:
        (folder / "raw.txt").write_text(RAW)
        train = ["--dim", "10", "--epochs", "1", "--buckets", "5000"]
        self.folder, table = folder, corpus.path / "vectors" / "t.json"
        self.arguments: dict[str, tuple[Callable[[list[str]], int], list[str], Path]] = {
            "tokenize": (tokenize.main, [f"{folder}/raw.txt", f"{folder}/text.txt"], folder / "text.txt"),
            "tokenize.gz": (tokenize.main, [f"{folder}/raw.txt", f"{folder}/text.gz"], folder / "text.gz"),
            "build_corpus": (build_corpus.main, [str(text), f"{folder}/c"], folder / "c" / "corpus.json"),
            "build_vectors": (build_vectors.main, [str(corpus.path), "random:1:200", "--name", "t"], table),
            "train_fasttext": (train_fasttext.main, [str(corpus.path), f"{folder}/v.bin", *train], folder / "v.bin"),
        }

    def run(self, name: str, *more: str) -> int:
        main, arguments, _ = self.arguments[name]
        return main([*arguments, *more])

    def locks(self, name: str) -> Path:
        return self.arguments[name][2]

    def files(self) -> list[str]:
        return sorted(map(str, self.folder.rglob("*")))


@pytest.fixture
def commands(small_corpus: Corpus, small_text: Path, tmp_path: Path) -> Commands:
    return Commands(tmp_path, small_corpus, small_text)


@pytest.mark.parametrize("name", ["tokenize", "build_corpus", "build_vectors", "train_fasttext"])
def test_a_second_writer_is_refused(commands: Commands, other_writer, error_line, name: str) -> None:
    path = commands.locks(name)
    other_writer(path)
    before = commands.files()
    assert str(path) in error_line(commands.run(name, "--workers", "1"))
    assert commands.files() == before


@pytest.mark.parametrize(
    ("name", "workers", "size"),
    [
        ("tokenize", "1", 8_000),
        ("tokenize.gz", "2", 1_000),
        ("build_corpus", "1", 4_000),
        ("build_corpus", "2", 4_000),
        ("build_vectors", "1", 15_000),  # the rows
        ("build_vectors", "2", 40_000),  # the raw vectors
        ("train_fasttext", "1", 100_000),  # the text
        ("train_fasttext", "1", 180_000),  # the model, by the library
    ],
)
def test_a_full_disk(commands: Commands, files_of_at_most, error_line, name: str, workers: str, size: int) -> None:
    before = commands.files()
    files_of_at_most(size)
    error_line(commands.run(name, "--workers", workers))
    files_of_at_most(1 << 40)
    left = [file for file in commands.files() if file not in before]
    assert not [file for file in left if "partial" in file or ".lock" in file]
    assert not commands.locks(name).is_file()
    assert commands.run(name, "--workers", "1") == 0


def test_a_killed_training_takes_its_child_with_it(commands: Commands) -> None:
    arguments = [*commands.arguments["train_fasttext"][1], "--epochs", "100000", "--workers", "1"]
    command = [sys.executable, "-m", "data_scripts.train_fasttext", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 60
    try:
        while not (numbers := [int(number) for number in children.read_text().split()]):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.kill()
        process.wait()
        while any(map(runs, numbers)):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        for number in filter(runs, numbers):
            os.kill(number, signal.SIGKILL)
    assert commands.run("train_fasttext", "--workers", "1") == 0
    assert not [file for file in commands.files() if "/." in file]
