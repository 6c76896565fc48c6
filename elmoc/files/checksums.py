"""Checksums: the hashes by which content is known again, and by which damage to a file
is found.

Two hashes are in use, since released files hold both: XXH3 (64 bits) in the checksums
of files and in the tables of compact word vectors, and BLAKE2b in the fingerprints of
models and word vectors.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from elmoc.errors import InputError, reading

# The size of the first and of the last block of a file, which are checked wherever it
# is opened: most damage is there, and they are read at once.
_END_BYTES = 1 << 16


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
        with open(path, "rb", buffering=0) as file:
            whole = hashlib.file_digest(file, xxhash.xxh3_64).hexdigest()
        return cls(os.path.getsize(path), _ends(path), whole)

    def check_ends(self, path: Path | str) -> None:
        """Check the size of a file, and its first and last block. No more is read.

        Raises:
            InputError: they are not as they were written.
        """
        if os.path.getsize(path) != self.bytes or _ends(path) != self.ends:
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


def _ends(path: Path | str) -> str:
    """A hash of the first and the last block of a file."""
    with open(path, "rb") as file:
        digest = xxhash.xxh3_64(file.read(_END_BYTES))
        # In a small file the last block is the rest, which may be empty.
        start = max(file.tell(), os.path.getsize(path) - _END_BYTES)
        file.seek(start)
        digest.update(file.read(_END_BYTES))
    return digest.hexdigest()


def fingerprint(parts: Iterable[bytes]) -> str:
    """A short content hash (16 hexadecimal digits) of byte strings.

    Args:
        parts: the byte strings; an iterator may make them one at a time.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        # The length is hashed, too, so that the same bytes in other parts have another
        # hash.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def fingerprint_file(
    path: Path | str, blocks: int = 64, block_bytes: int = 1 << 16
) -> str:
    """A content hash of a file that is quick for large ones.

    It covers the size and blocks spread evenly over the file, first and last included;
    a file smaller than all the blocks together is covered whole.

    Args:
        path: the file.
        blocks: the number of blocks.
        block_bytes: the size of a block.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if size <= blocks * block_bytes:
            return fingerprint([file.read()])
        parts = [size.to_bytes(8, "little")]
        for index in range(blocks):
            # The first block starts at 0, and the last one ends with the file.
            start = (size - block_bytes) * index // (blocks - 1)
            file.seek(start)
            parts.append(file.read(block_bytes))
    return fingerprint(parts)
