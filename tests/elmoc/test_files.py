"""Files: read with errors that name the place, and written whole or not at all."""

import errno
import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmoc import files
from elmoc.errors import InputError, run_command
from elmoc.files import (
    atomic_path,
    fingerprint,
    fingerprint_file,
    human_bytes,
    read_json,
    read_lines,
    refuse_existing,
    require_space,
    write_json,
)


def test_atomic_path_leaves_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with atomic_path(path) as partial:
        partial.write_text("first")

    def interrupted() -> None:
        with atomic_path(path) as partial:
            partial.write_text("second")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "first"
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_json(tmp_path: Path) -> None:
    value = {"é": [1, None, {"a": 0.5}]}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    (tmp_path / "a.json").write_bytes((tmp_path / "a.json").read_bytes()[:-5])
    with pytest.raises(InputError, match="truncated"):
        read_json(tmp_path / "a.json")
    with pytest.raises(InputError, match="does not exist"):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_only_newlines_end_lines(tmp_path: Path, ending: str) -> None:
    data = "a\u2028b\r\n\nc\x0cd\x85e\nlast".encode()
    path = tmp_path / f"text{ending}"
    path.write_bytes(gzip.compress(data) if ending else data)
    assert list(read_lines(path)) == ["a\u2028b", "", "c\x0cd\x85e", "last"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a", b"fine\n\xc3(\n", "line 2: byte 0xc3"),
        ("a.gz", gzip.compress(b"fine\n")[:-3], "truncated or damaged"),
        ("a.gz", b"plain", "truncated or damaged"),
        ("b", None, "does not exist"),
    ],
)
def test_bad_text(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        list(read_lines(tmp_path / name))


def test_fingerprints_see_every_kind_of_change(tmp_path: Path) -> None:
    assert fingerprint(b"ab", b"c") != fingerprint(b"a", b"bc")
    path = tmp_path / "file"
    data = bytearray(range(256)) * 40  # 10,240 bytes
    path.write_bytes(data)
    small = {"blocks": 4, "block_bytes": 100}
    first, sampled = fingerprint_file(path), fingerprint_file(path, **small)
    data[-1] ^= 1
    path.write_bytes(data)
    assert fingerprint_file(path) != first
    assert fingerprint_file(path, **small) != sampled
    path.write_bytes(data[:-1])
    assert len({first, sampled, fingerprint_file(path), fingerprint_file(path, **small)}) == 4


def test_checks_before_writing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(InputError, match="exists already"):
        refuse_existing(tmp_path / "there")
    refuse_existing(tmp_path / "new")
    require_space(tmp_path / "a" / "b", 1)
    with pytest.raises(InputError, match="its disk has"):
        require_space(tmp_path / "a" / "b", 10**18)
    assert [human_bytes(size) for size in (999, 1500, 2_400_000_000, 3e15)] == [
        "999 B",
        "1.5 KB",
        "2.4 GB",
        "3000.0 TB",
    ]


def test_commands_say_what_is_wrong_in_one_line(capsys) -> None:
    def fail(error: BaseException) -> None:
        raise error

    assert run_command(lambda: None) == 0
    assert run_command(lambda: fail(InputError("no such thing"))) == 1
    assert run_command(lambda: fail(OSError(28, "No space left on device", "x.bin"))) == 1
    assert run_command(lambda: fail(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err.splitlines() == [
        "error: no such thing",
        "error: the disk is full (x.bin): free some space and run the command again",
        "interrupted",
    ]
    with pytest.raises(ZeroDivisionError):
        run_command(lambda: fail(ZeroDivisionError()))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_one_sentence_whoever_reports_it(tmp_path: Path, error: Exception) -> None:
    message = r"out\.txt could not be written, the disk is full"
    with pytest.raises(InputError, match=message), atomic_path(tmp_path / "out.txt"):
        raise error
    assert not list(tmp_path.iterdir())


def test_an_error_without_words_is_a_full_disk_where_nothing_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    with pytest.raises(InputError, match="the disk is full"), atomic_path(tmp_path / "out.txt"):
        raise RuntimeError("file write failed")
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**9))
    with pytest.raises(RuntimeError, match="file write failed"), atomic_path(tmp_path / "out.txt"):
        raise RuntimeError("file write failed")
