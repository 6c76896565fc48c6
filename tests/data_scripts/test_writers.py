"""What every command of the data scripts does with a second writer, a kill, a full disk, and absurd numbers."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from data_scripts import build_corpus, build_vectors, one_billion, tokenize, train_fasttext
from elmoc.corpus import Corpus
from tests.data_scripts.archives import write_archive

RAW = "".join(f"Mr. Smith said: this is sentence {number}. He didn't!\n" for number in range(400))


class Commands:
    """The commands that write, each with small inputs: how it is run, and the path that it locks."""

    def __init__(self, folder: Path, corpus: Corpus, text: Path) -> None:
        (folder / "raw.txt").write_text(RAW)
        self.archive = folder / "1b.tar.gz"
        train = ["--dim", "10", "--epochs", "1", "--buckets", "5000"]
        self.folder, self.table = folder, corpus.path / "vectors" / "t.json"
        self.arguments: dict[str, tuple[Callable[[list[str]], int], list[str], Path]] = {
            "tokenize": (tokenize.main, [f"{folder}/raw.txt", f"{folder}/text.txt"], folder / "text.txt"),
            "tokenize.gz": (tokenize.main, [f"{folder}/raw.txt", f"{folder}/text.gz"], folder / "text.gz"),
            "build_corpus": (build_corpus.main, [str(text), f"{folder}/c"], folder / "c" / "corpus.json"),
            "build_vectors": (build_vectors.main, [str(corpus.path), "random:1:200", "--name", "t"], self.table),
            "train_fasttext": (train_fasttext.main, [str(corpus.path), f"{folder}/v.bin", *train], folder / "v.bin"),
            "one_billion": (one_billion.main, [str(self.archive), f"{folder}/b"], folder / "b"),
        }

    def run(self, name: str, *more: str) -> int:
        main, arguments, _ = self.arguments[name]
        if name == "one_billion" and not self.archive.exists():
            write_archive(self.archive, padding=300)
        return main([*arguments, *more])

    def locks(self, name: str) -> Path:
        return self.arguments[name][2]

    def files(self) -> list[str]:
        """All that there is, but for the archive."""
        return sorted(str(path) for path in self.folder.rglob("*") if path != self.archive)


@pytest.fixture
def commands(small_corpus: Corpus, small_text: Path, tmp_path: Path) -> Commands:
    return Commands(tmp_path, small_corpus, small_text)


NAMES = ["tokenize", "build_corpus", "build_vectors", "train_fasttext", "one_billion"]


@pytest.mark.parametrize("name", NAMES)
def test_a_second_writer_is_refused(commands: Commands, other_writer, error_line, name: str) -> None:
    path = commands.locks(name)
    other_writer(path)
    before = commands.files()
    error = error_line(commands.run(name, "--workers", "1"))
    assert error == f"error: another process is writing {path}: wait for it, or stop it"
    assert commands.files() == before


@pytest.mark.parametrize("name", ["tokenize", "train_fasttext"])
def test_what_another_process_has_just_finished_is_not_overwritten(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, error_line, name: str
) -> None:
    path = commands.locks(name)
    module = sys.modules[f"data_scripts.{name}"]
    real = module.locked

    def slow(path: Path):
        path.write_text("theirs")  # just before this process gets the lock
        return real(path)

    monkeypatch.setattr(module, "locked", slow)
    assert "exists already" in error_line(commands.run(name, "--workers", "1"))
    assert path.read_text() == "theirs"


@pytest.mark.parametrize("name", NAMES)
def test_what_a_killed_writer_left_is_removed(commands: Commands, name: str) -> None:
    path = commands.locks(name)
    path.parent.mkdir(exist_ok=True)
    if name == "build_corpus":
        (path.parent / ".work").mkdir()
    for kind in ("lock",) if name == "one_billion" else ("lock", "partial"):
        path.with_name(f".{path.name}.{kind}").write_text("old")
    assert commands.run(name, "--workers", "1") == 0
    assert not [file for file in commands.files() if "/." in file]


@pytest.mark.parametrize(
    ("name", "workers", "size"),
    [
        ("tokenize", "1", 8_000),
        ("tokenize", "2", 8_000),
        ("tokenize.gz", "1", 1_000),
        ("build_corpus", "1", 4_000),  # the shards of a piece
        ("build_corpus", "2", 4_000),
        ("build_corpus", "2", 1_100),  # the description of a piece
        ("build_vectors", "1", 15_000),  # the rows
        ("build_vectors", "2", 15_000),
        ("build_vectors", "1", 40_000),  # the raw vectors
        ("train_fasttext", "1", 100_000),  # the text
        ("train_fasttext", "1", 180_000),  # the model, by the library
        ("one_billion", "1", 200),  # the checksums of a piece
        ("one_billion", "1", 3_000),  # a chunk
    ],
)
def test_a_full_disk(commands: Commands, files_of_at_most, error_line, name: str, workers: str, size: int) -> None:
    if name == "one_billion":
        write_archive(commands.archive, padding=300)
    before = commands.files()
    files_of_at_most(size)
    error = error_line(commands.run(name, "--workers", workers))
    files_of_at_most(1 << 40)
    assert re.search(r"^error: /\S+: (No space left|File too large)", error)
    left = [file for file in commands.files() if file not in before]
    assert not [file for file in left if "partial" in file or ".lock" in file]
    assert not commands.locks(name).is_file()
    assert commands.run(name, "--workers", "1") == 0


NUMBERS = [(name, "--workers", value) for name in NAMES for value in ("0", "-1", "1000000", "9" * 30)] + [
    ("build_corpus", "--min-count", "9" * 30),
    ("build_corpus", "--shard-tokens", str(10**18)),
    ("train_fasttext", "--dim", str(10**9)),
    ("train_fasttext", "--epochs", str(10**9)),
    ("train_fasttext", "--buckets", str(2**31)),
    ("train_fasttext", "--min-count", str(2**31)),
    ("train_fasttext", "--seed", "-1"),
    ("train_fasttext", "--seed", "1" + "0" * 23),
    ("train_fasttext", "--learning-rate", "nan"),
    ("train_fasttext", "--learning-rate", "1e999"),
]


@pytest.mark.parametrize(("name", "option", "value"), NUMBERS)
def test_absurd_numbers_are_refused_at_once(commands: Commands, error_line, name: str, option: str, value: str) -> None:
    before = commands.files()
    assert error_line(commands.run(name, option, value)).startswith(f"error: {option} must be ")
    assert commands.files() == before


def test_a_model_larger_than_the_disk_is_refused_at_once(commands: Commands, error_line) -> None:
    error = error_line(commands.run("train_fasttext", "--dim", "65536", "--buckets", str(2**31 - 1)))
    assert "v.bin needs about 562.9 TB, but its disk" in error


def test_too_many_shards_are_refused(commands: Commands, tmp_path: Path, error_line) -> None:
    (tmp_path / "long.txt").write_text("a b c d e\n" * 60_000)
    command = [str(tmp_path / "long.txt"), str(tmp_path / "c"), "--shard-tokens", "1"]
    error = error_line(build_corpus.main(command))
    assert error == (
        f"error: --shard-tokens 1 makes over 100,000 shards of {tmp_path}/long.txt, about 120,000 words: give a larger "
        "one"
    )


def test_a_finished_corpus_loses_the_folders_of_a_build_killed_at_its_end(commands: Commands, error_line) -> None:
    for name, corpus in (("build_corpus", "c"), ("one_billion", "b")):
        assert commands.run(name, "--workers", "1") == 0
        (commands.folder / corpus / ".work" / "piece").mkdir(parents=True)
        if name == "one_billion":
            (commands.folder / ".b.unpacked").mkdir()
        assert "is a finished corpus already" in error_line(commands.run(name, "--workers", "1"))
    assert not [file for file in commands.files() if "/." in file]


def test_a_killed_training_takes_its_child_with_it(commands: Commands) -> None:
    arguments = [*commands.arguments["train_fasttext"][1], "--epochs", "100000", "--workers", "1"]
    command = [sys.executable, "-m", "data_scripts.train_fasttext", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        numbers = _wait_for(lambda: child.read_text().split())
        process.kill()
        process.wait()
        _wait_for(lambda: not any(_runs(int(number)) for number in numbers))
    finally:
        for number in numbers:
            if _runs(int(number)):
                os.kill(int(number), signal.SIGKILL)
    assert commands.run("train_fasttext", "--workers", "1") == 0
    assert not [file for file in commands.files() if "/." in file]


def _runs(number: int) -> bool:
    state = Path(f"/proc/{number}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def _wait_for(condition: Callable):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen")
