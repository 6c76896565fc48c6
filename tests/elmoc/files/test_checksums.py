"""Checksums: every kind of change is seen, at the ends at once and inside by reading all."""

import zipfile
from pathlib import Path

import pytest
import xxhash
from elmoc.errors import InputError
from elmoc.files.checksums import (
    FileChecksum,
    block_starts,
    check_archive,
    check_beside,
    checksum_line,
    checksum_path,
    fingerprint,
    fingerprint_file,
)


def test_fingerprints_see_every_kind_of_change(tmp_path: Path) -> None:
    assert fingerprint([b"ab", b"c"]) != fingerprint([b"a", b"bc"])
    path = tmp_path / "file"
    data = bytearray(range(256)) * 40  # 10,240 bytes
    path.write_bytes(data)
    first = fingerprint_file(path)
    assert first == xxhash.xxh3_64_hexdigest(
        b"".join(len(part).to_bytes(8, "little") + part for part in (b"10240", data))
    )
    data[-1] ^= 1
    path.write_bytes(data)
    assert fingerprint_file(path) != first


@pytest.mark.parametrize(
    ("size", "starts"), [(1, [0]), (70_000, [0, 1488, 2976, 4464]), (262_144, [0, 65_536, 131_072, 196_608])]
)
def test_blocks_are_spread_from_the_first_byte_to_the_last(size: int, starts: list[int]) -> None:
    assert block_starts(size, 4) == starts


@pytest.mark.parametrize("size", [0, 1, 70_000, 1_000_000])
def test_file_checksums_see_damage(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    data = bytes(number % 251 for number in range(size))
    path.write_bytes(data)
    checksum = FileChecksum.of(path)
    checksum.check_whole(path)
    path.write_bytes(data + b"x")
    with pytest.raises(InputError, match="file"):
        checksum.check_ends(path)
    for position in {0, size // 2, size - 1} if size else set():
        changed = bytearray(data)
        changed[position] ^= 4
        path.write_bytes(changed)
        with pytest.raises(InputError, match="file"):
            checksum.check_whole(path)
        if position in (0, size - 1):
            with pytest.raises(InputError, match="file"):
                checksum.check_ends(path)


def test_archives_are_read_to_their_end_and_damage_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/0", bytes(3_000_000))
        archive.writestr("data/1", b"1" * 1000)
    check_archive(path)
    content = path.read_bytes()
    for damaged in (content.replace(b"111", b"121", 1), content[:-40]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.pt"):
            check_archive(path)


def test_the_line_beside_a_file_is_that_of_xxhsum(tmp_path: Path) -> None:
    path = tmp_path / "a (b) = c.h5"
    assert not check_beside(path)
    path.write_bytes(b"abc")
    assert not check_beside(path)
    # `xxhsum --tag -H3` of release 0.8.1 writes this
    assert checksum_line(path, path.name) == b"XXH3 (a (b) = c.h5) = 78af5f94892f3950\n"
    checksum_path(path).write_bytes(checksum_line(path, path.name))
    assert check_beside(path)
    path.rename(tmp_path / "d.h5")
    checksum_path(path).rename(tmp_path / "d.h5.xxh3")
    with pytest.raises(InputError, match=r"d\.h5 is damaged.*renamed"):
        check_beside(tmp_path / "d.h5")
