"""Checksums: the hashes by which content is known again, and by which damage to a file
is found. All of them are XXH3.

A record of ours (`config.json`, …) holds the checksums of the files that belong to it.
A file that stands alone, such as the record itself, has `FILE.xxh3` beside it: the line
that `xxhsum -H3 FILE` prints and `xxhsum -c` verifies.
"""

import hashlib
import mmap
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash

from elmoc.errors import InputError, reading
from elmoc.files.compression import require_file

# The size of a block. The first and the last of a file are checked wherever it is
# opened: most damage is there, and they are read at once.
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class FileChecksum:
    """The size and the hashes of a file, by which damage to it is found.

    bytes: its size.
    ends: a hash of its first and last 64 KiB.
    whole: a hash of all of it.
    """

    bytes: int
    ends: str
    whole: str

    @classmethod
    def of(cls, path: Path | str) -> "FileChecksum":
        """The checksum of a file as it is now. All of the file is read."""
        return cls(os.path.getsize(path), _ends(path), _whole(path))

    def check_ends(self, path: Path | str) -> None:
        """Check the size of a file, and its first and last block. No more is read.

        Raises:
            InputError: they are not as they were written.
        """
        if _ends(path) != self.ends or os.path.getsize(path) != self.bytes:
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
    path = Path(path)
    return path.with_name(f"{path.name}.xxh3")


def checksum_line(path: Path | str, name: str) -> bytes:
    """What `FILE.xxh3` says of a file as it is now, whose name is or will be `name`."""
    return b"XXH3_%b  %b\n" % (_whole(path).encode(), os.fsencode(name))


def check_beside(path: Path | str) -> bool:
    """Check all of a file by `FILE.xxh3`; returns whether there is one.

    Raises:
        InputError: the file is not as it was written, or has another name.
    """
    written = checksum_path(path)
    if not written.exists():
        return False
    require_file(written)
    if written.read_bytes() != checksum_line(path, Path(path).name):
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


def _whole(path: Path | str) -> str:
    """A hash of all of a file."""
    require_file(path)
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, xxhash.xxh3_64).hexdigest()


def _ends(path: Path | str) -> str:
    """A hash of the first and the last block of a file."""
    require_file(path)
    with open(path, "rb") as file:
        digest = xxhash.xxh3_64(file.read(_BLOCK_BYTES))
        # In a small file the last block is the rest, which may be empty.
        start = max(file.tell(), os.path.getsize(path) - _BLOCK_BYTES)
        file.seek(start)
        digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()


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


def fingerprint_file(path: Path | str) -> str:
    """A content hash of a file, which is not empty, that is quick for large ones: of 64
    of its blocks, see `spread_blocks`.
    """
    with open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with content:
        return fingerprint(spread_blocks(content, 64))


def spread_blocks(content: mmap.mmap | memoryview, blocks: int) -> Iterator[bytes]:
    """Yield what stands for bytes of which not all are to be read: their number, and
    blocks of 64 KiB spread evenly over them, first and last included.

    If all blocks together are larger than the content, they cover all of it.
    """
    yield b"%d" % len(content)
    last = max(0, len(content) - _BLOCK_BYTES)
    for start in sorted({last * index // (blocks - 1) for index in range(blocks)}):
        yield content[start : start + _BLOCK_BYTES]
