"""Index of a fastText dictionary: kept beside the file or in the cache, and never trusted when it may be wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fasttext
import numpy as np
import pytest
import xxhash

from elmoc.word_vectors.fasttext import file as fasttext_file
from elmoc.word_vectors.fasttext import index as fasttext_index
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from tests.elmoc.word_vectors.fasttext.files import KINDS, fasttext_bytes

WORDS = ("the", "theatre", "cat", "unseen", "</s>", "")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Indexes of dictionaries of any size are kept; the cache directory, which is not there yet."""
    monkeypatch.setattr(fasttext_index, "KEPT_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/elmoc/indexes"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/v.bin").write_bytes(KINDS["skip-gram"])
    return tmp_path / "v/v.bin"


def check(path: Path) -> None:
    """The vectors of a file are the library's."""
    model = fasttext.load_model(str(path))
    expected = np.array([model.get_word_vector(word) for word in WORDS])
    assert np.array_equal(FastTextVectors(path).lookup(WORDS), expected)


@pytest.fixture
def not_walked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Opens a file whose dictionary must not be read entry by entry."""

    def open_again(path: Path) -> None:
        def walk(*arguments: object) -> None:
            raise AssertionError("the dictionary is read")

        with monkeypatch.context() as patched:
            patched.setattr(fasttext_file, "_check_dictionary", walk)
            check(path)

    return open_again


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def test_the_index_is_kept_and_read_instead_of_the_dictionary(path: Path, not_walked: Callable[[Path], None]) -> None:
    check(path)
    assert beside(path).exists()
    not_walked(path)


def test_an_index_of_another_state_of_the_file_is_made_again(path: Path) -> None:
    check(path)
    old = beside(path).read_bytes()
    path.write_bytes(fasttext_bytes(words=["</s>", "cat", "the", "theatre"]))
    check(path)
    assert beside(path).read_bytes() != old


def test_a_damaged_index_is_made_again(path: Path) -> None:
    check(path)
    whole = beside(path).read_bytes()
    for place in (*range(0, 200, 7), *range(4096, len(whole))):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        beside(path).write_bytes(damaged)
        check(path)
        assert beside(path).read_bytes() == whole
    for kept in (0, 100, 4096, len(whole) - 1):
        beside(path).write_bytes(whole[:kept])
        check(path)
        assert beside(path).read_bytes() == whole
    head, index = json.loads(whole[:4096]), np.frombuffer(whole[4096:], fasttext_index.ENTRY).copy()
    for far in (-1, head["dictionary_end"], 1 << 40):  # somebody has made it: its checksum fits
        index["offset"][1] = far
        head["checksum"] = xxhash.xxh3_64_hexdigest(index.data)
        beside(path).write_bytes(json.dumps(head).encode().ljust(4096) + index.tobytes())
        check(path)
        assert beside(path).read_bytes() == whole


def test_where_the_folder_cannot_be_written_the_index_is_in_the_cache(
    path: Path,
    kept: Path,
    not_walked: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = path.rename(path.with_name("v" * 250 + ".bin"))  # the name of its index is too long
    check(named)
    assert os.listdir(named.parent) == [named.name]
    assert [index.suffix for index in kept.iterdir()] == [".index"]
    not_walked(named)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(named))  # no folder
    check(named)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: no index")


def test_processes_that_open_a_file_at_once(path: Path) -> None:
    code = f"""
from elmoc.word_vectors.fasttext import index as fasttext_index
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
fasttext_index.KEPT_BYTES = 0
print("ready", flush=True)
input()
vectors = FastTextVectors({str(path)!r}).lookup(["the", "unseen"])
print(vectors.tobytes().hex())
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    found = {process.communicate()[0] for process in processes}
    model = fasttext.load_model(str(path))
    assert found == {np.array([model.get_word_vector(word) for word in ("the", "unseen")]).tobytes().hex() + "\n"}
    assert sorted(name for name in os.listdir(path.parent) if name[0] != ".") == ["v.bin", "v.bin.index"]
