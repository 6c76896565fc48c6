"""Checksums: the hashes by which content is known again, and by which damage to a file
is found. All of them are XXH3.

A record of ours (`config.json`, …) holds the checksums of the files that belong to it.
A file that stands alone, such as the record itself, has `FILE.xxh3` beside it: the line
that `xxhsum --tag -H3 FILE` prints, and every release of `xxhsum -c` verifies.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from elmoc.errors import InputError, reading
from elmoc.files.compression import first_bytes, require_file

# The size of a block. The first and the last of a file are checked wherever it is
# opened: most damage is there, and they are read at once.
BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class FileChecksum:
    """The size and the hashes of a file, by which damage to it is found.

    bytes: its size.
    ends: a fingerprint of its size, and of its first and last 64 KiB.
    whole: a hash of all of it.
    """

    bytes: int
    ends: str
    whole: str

    @classmethod
    def of(cls, path: os.PathLike[str] | str) -> "FileChecksum":
        """The checksum of a file as it is now. All of the file is read."""
        ends = fingerprint_file(path, blocks=2)
        with open(path, "rb", buffering=0) as file:
            whole = hashlib.file_digest(file, xxhash.xxh3_64).hexdigest()
        return cls(os.path.getsize(path), ends, whole)

    def check_ends(self, path: Path | str) -> None:
        """Check the size of a file, and its first and last block. No more is read.

        Raises:
            InputError: they are not as they were written.
        """
        if fingerprint_file(path, blocks=2) != self.ends:
            raise InputError(
                f"{path} is damaged: its size, or its first or last block, is not what "
                "was written"
            )

    def check_whole(self, path: Path | str) -> None:
        """Check all of a file.

        Raises:
            InputError: it is not as it was written.
        """
        if self.of(path) != self:
            raise InputError(f"{path} is damaged: its content is not what was written")


def checksum_path(path: Path | str) -> Path:
    """Where the checksum of a file that stands alone is: `FILE.xxh3`."""
    return Path(f"{path}.xxh3")


def checksum_line(path: Path | str, name: str) -> bytes:
    """What `FILE.xxh3` says of a file as it is now, whose name is or will be `name`."""
    whole = FileChecksum.of(path).whole
    return b"XXH3 (%b) = %b\n" % (os.fsencode(name), whole.encode())


def check_beside(path: Path | str) -> bool:
    """Check all of a file by `FILE.xxh3`; returns whether both are there.

    Raises:
        InputError: the file is not as it was written, or has another name.
    """
    written = checksum_path(path)
    if not (written.exists() and os.path.exists(path)):
        return False
    line = checksum_line(path, Path(path).name)
    # A damaged one may be of any size.
    if first_bytes(written, len(line) + 1) != line:
        raise InputError(
            f"{path} is damaged: it is not what {written.name} says (where you have "
            f"changed or renamed it yourself, remove {written.name})"
        )
    return True


def check_archive(path: Path | str) -> None:
    """Check the members of a zip archive, whose checksums PyTorch ignores.

    Raises:
        InputError: a member is damaged, or might be unpacked to any size.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        # PyTorch compresses no member. Packed ones, or several that share their bytes,
        # could fill the memory.
        is_packed = any(each.compress_type != zipfile.ZIP_STORED for each in members)
        size = sum(each.file_size for each in members)
        if is_packed or size > os.path.getsize(path):
            raise ValueError("its members are compressed, or share their content")
        pickles = [each for each in members if each.filename.endswith(".pkl")]
        if any(b"bytearray" in archive.read(each) for each in pickles):
            raise ValueError("it holds an array of any number of bytes")
        damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"{damaged} is not what was written")


def fingerprint(parts: Iterable[bytes]) -> str:
    """A short content hash (16 hexadecimal digits) of byte strings.

    Args:
        parts: the byte strings; an iterator may make them one at a time.
    """
    digest = xxhash.xxh3_64()
    for part in parts:
        # The length is hashed, too, so that the same bytes in other parts have another
        # hash.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def fingerprint_file(path: os.PathLike[str] | str, *, blocks: int = 64) -> str:
    """A content hash of a file that is quick for large ones: of its size, and of blocks
    of it (see `block_starts`).
    """
    # A pipe, or a device, may have no end.
    require_file(path)
    size = os.path.getsize(path)
    parts = [b"%d" % size]
    with open(path, "rb") as file:
        for start in block_starts(size, blocks):
            file.seek(start)
            parts.append(file.read(BLOCK_BYTES))
    return fingerprint(parts)


def block_starts(size: int, blocks: int) -> list[int]:
    """Where blocks of 64 KiB begin that are spread evenly over a number of bytes, first
    and last included; if that is smaller than all of them together, they cover it.
    """
    last = max(0, size - BLOCK_BYTES)
    return sorted({last * index // (blocks - 1) for index in range(blocks)})
