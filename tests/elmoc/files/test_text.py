"""Text files: lines, and what cannot be read as lines, with errors that name the place."""

import gzip
import lzma
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.files.text import open_text, read_lines


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lzma.compress, partial(lzma.compress, format=lzma.FORMAT_ALONE)]
)
def test_only_newlines_end_lines(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "text"
    path.write_bytes(pack("a\u2028b\r\n\nc\x0cd\x85e\nlast".encode()))
    assert list(read_lines(path)) == ["a\u2028b", "", "c\x0cd\x85e", "last"]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_what_is_written_is_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text{ending}"
    with open_text(path) as file:
        file.write("déjà\n\nlast")
        assert not path.exists()
    assert list(read_lines(path)) == ["déjà", "", "last"]
    assert path.read_bytes().startswith(b"\x1f\x8b") == bool(ending)


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("a", b"fine\n\xc3(\n", "a, line 2: byte 0xc3"),
        ("a.gz", gzip.compress(b"fine\n", mtime=0)[:-3], r"a\.gz"),
        ("a.gz", gzip.compress(b"fine\n", mtime=0) + b"more", r"a\.gz"),
        ("a.tar.gz", gzip.compress(tarfile.TarInfo("x").tobuf() + b"fine\n", mtime=0), r"a\.tar\.gz is a tar archive"),
        ("b", None, "b"),
    ],
)
def test_bad_text(tmp_path: Path, name: str, data: bytes | None, place: str) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=f"/{place}"):
        list(read_lines(tmp_path / name))


def test_lines_have_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmoc.files.text.MAX_LINE_BYTES", 1 << 20)
    (tmp_path / "long").write_bytes(b"a\n" + b"b" * (1 << 20))
    assert [len(line) for line in read_lines(tmp_path / "long")] == [1, 1 << 20]
    with open(tmp_path / "long", "ab") as file:
        file.write(b"b")
    with pytest.raises(InputError, match="long, line 2"):
        list(read_lines(tmp_path / "long"))
