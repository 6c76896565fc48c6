"""Index of a fastText dictionary: kept beside the file or in the cache, and never trusted when it may be wrong."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fasttext
import numpy as np
import pytest

from elmoc.files.locks import locked
from elmoc.word_vectors.fasttext import file as fasttext_file
from elmoc.word_vectors.fasttext import index as fasttext_index
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from tests.elmoc.word_vectors.fasttext.files import KINDS, fasttext_bytes

WORDS = ("the", "theatre", "cat", "unseen", "</s>", "")
LONG_NAME = "v" * 250 + ".bin"
"""Of a file whose index has too long a name to stand beside it."""


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
        def walk(self: object) -> None:
            raise AssertionError("the dictionary is read")

        with monkeypatch.context() as patched:
            patched.setattr(fasttext_file._Walk, "check_dictionary", walk)
            check(path)

    return open_again


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def test_the_index_stands_beside_the_file_and_saves_reading_the_dictionary(
    path: Path, kept: Path, not_walked: Callable[[Path], None]
) -> None:
    with pytest.raises(AssertionError, match="the dictionary is read"):
        not_walked(path)
    check(path)
    assert sorted(os.listdir(path.parent)) == ["v.bin", "v.bin.index"]
    written = beside(path).stat().st_mtime_ns
    not_walked(path)
    link = path.parent.parent / "link.bin"
    link.symlink_to(path)
    not_walked(link)
    assert beside(path).stat().st_mtime_ns == written
    assert not kept.exists()


def test_small_dictionaries_and_quantised_files_have_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(KINDS["quantised"])
    FastTextVectors(path)
    path.write_bytes(KINDS["skip-gram"])
    monkeypatch.setattr(fasttext_index, "KEPT_BYTES", 1 << 20)
    check(path)
    assert os.listdir(path.parent) == ["v.bin"]


def test_a_file_that_has_changed_gets_a_new_index(path: Path, not_walked: Callable[[Path], None]) -> None:
    check(path)
    status = path.stat()
    changed = {
        "a new dictionary": KINDS["skip-gram"].replace(b"cat\0", b"the\0", 1).replace(b"the\0", b"cat\0", 1),
        "one more word": fasttext_bytes(words=("</s>", "cat", "the", "theatre", "unseen")),
        "other numbers": KINDS["skip-gram"][:-1] + b"\1",
    }
    for what, content in changed.items():
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as if it had not changed
        with pytest.raises(AssertionError, match="the dictionary is read"):
            not_walked(path)
        check(path), what
        not_walked(path)
    os.utime(path, ns=(0, 0))
    with pytest.raises(AssertionError, match="the dictionary is read"):
        not_walked(path)


def test_a_damaged_index_gives_no_wrong_vectors_and_is_made_again(path: Path) -> None:
    check(path)
    whole = beside(path).read_bytes()
    damaged = [whole[:kept] for kept in (0, 10, 4095, 4096, 4100, len(whole) - 1)] + [whole + b"\0", b"\xff" * 5000]
    for place in (2, 40, 120, 200, 260, 4095, *range(4096, len(whole), 5)):
        damaged.append(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
    for content in damaged:
        beside(path).write_bytes(content)
        check(path)
        assert beside(path).read_bytes() == whole


def test_an_index_of_entries_outside_the_dictionary_is_made_again(path: Path) -> None:
    """Its checksum fits: somebody has made it."""
    check(path)
    whole = beside(path).read_bytes()
    state = fasttext_index._FileState.of(path, int(whole.split(b'"dictionary_end": ')[1].split(b",")[0]))
    for far in (-1, state.dictionary_end, 1 << 40):
        offsets = np.full(4, far)
        fasttext_index._write(beside(path), state, [offsets, np.zeros(4, "<u4"), np.zeros(4, "<u4")])
        check(path)
        assert beside(path).read_bytes() == whole


def test_where_the_folder_cannot_be_written_the_index_is_in_the_cache(
    path: Path, kept: Path, not_walked: Callable[[Path], None]
) -> None:
    named = path.rename(path.with_name(LONG_NAME))
    check(named)
    assert os.listdir(named.parent) == [LONG_NAME]
    (index,) = kept.iterdir()
    assert index.suffix == ".index"
    not_walked(named)
    index.write_bytes(b"damaged")
    check(named)
    not_walked(named)


def test_where_nothing_can_be_written_the_vectors_are_right_all_the_same(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = path.rename(path.with_name(LONG_NAME))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    check(named)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: no index of {named} can be kept, each opening makes it anew (")
    assert "Not a directory" in line
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    check(named)
    assert "File name too long" in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_index(path: Path, kept: Path) -> None:
    beside(path).mkdir()
    check(path)
    assert len(list(kept.iterdir())) == 1


def test_while_another_process_writes_the_index_it_is_made_in_memory(
    path: Path, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = f"""
from elmoc.files.locks import locked
with locked({str(beside(path))!r}):
    print("locked", flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        check(path)
        assert not beside(path).exists()
        other.communicate(b"\n")
    assert not kept.exists()
    assert capsys.readouterr().err == ""
    with locked(path):  # of the file itself is no hindrance
        check(path)
    assert beside(path).exists()


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
    assert sorted(os.listdir(path.parent)) == ["v.bin", "v.bin.index"]
