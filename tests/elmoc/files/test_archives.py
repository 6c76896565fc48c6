"""Archives: one that is whole passes and is read to its end, and what is damaged or packed is named."""

import zipfile
from pathlib import Path

import pytest

from elmoc.files.archives import check_archive


def write_archive(path: Path, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("data/0", bytes(3_000_000))
        archive.writestr("data/1", b"1" * 1000)
    return path


def test_a_whole_archive_is_read_to_its_end(tmp_path: Path) -> None:
    path, read = write_archive(tmp_path / "whole.pt"), list[int]()
    check_archive(path)
    check_archive(path, progress=read.append)
    assert sum(read) == 3_001_000
    assert max(read) <= 1 << 20


def test_damage_is_named(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "damaged.pt")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"111", b"121", 1))
    with pytest.raises(ValueError, match="the content of data/1 has changed"):
        check_archive(path)
    path.write_bytes(content[:-40])
    with pytest.raises(zipfile.BadZipFile):
        check_archive(path)
    with pytest.raises(ValueError, match="it is compressed"):
        check_archive(write_archive(tmp_path / "packed.pt", zipfile.ZIP_DEFLATED))
