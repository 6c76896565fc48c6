"""FastText `.bin` files: the width of their vectors, and whether they are as long as they say.

The library reads a truncated file without complaint and then gives wrong vectors, so the size that the file's own
header and dictionary imply is checked before it is loaded.
"""

import os
import struct
from pathlib import Path
from typing import BinaryIO

from elmoc.errors import InputError

_MAGIC = 793712314
_VERSION = 12
_ARGUMENTS = struct.Struct("<12id")  # dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, …, t
_DICTIONARY = struct.Struct("<3i2q")  # entries, words, labels, tokens, size of the prune index
_MATRIX = struct.Struct("<2q")  # rows, columns


def vector_width(path: Path | str) -> int:
    """E of a fastText `.bin` file; raises `InputError` when it is missing, foreign or truncated."""
    try:
        with open(path, "rb") as file:
            return _checked_width(Path(path), file)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except struct.error:
        raise _truncated(path) from None


def _checked_width(path: Path, file: BinaryIO) -> int:
    magic, version = struct.unpack("<2i", file.read(8))
    if magic != _MAGIC or version > _VERSION:
        raise InputError(f"{path} is not a fastText .bin file (of a version up to {_VERSION})")
    dim, *_ = _ARGUMENTS.unpack(file.read(_ARGUMENTS.size))
    entries, *_, pruned = _DICTIONARY.unpack(file.read(_DICTIONARY.size))
    rest = _Reader(file)
    for _ in range(entries):
        rest.skip_word()
    if pruned > 0:
        rest.skip(8 * pruned)
    if not rest.take(1)[0]:  # quantised matrices have another layout; the library checks those
        for flag_bytes in (0, 1):  # the input matrix, and after one more flag the output matrix
            rest.skip(flag_bytes)
            rows, columns = _MATRIX.unpack(rest.take(_MATRIX.size))
            rest.skip(4 * rows * columns)
    if rest.position > os.path.getsize(path):
        raise _truncated(path)
    return dim


class _Reader:
    """Reads a file in large blocks, and keeps the position that has been reached."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.position = file.tell()
        self.block = b""
        self.start = self.position  # of the block

    def skip_word(self) -> None:
        """Step over one dictionary entry: the word, its zero byte, its count (8 bytes) and type (1 byte)."""
        offset = self.position - self.start
        end = self.block.find(b"\0", offset)
        if end < 0 or end + 10 > len(self.block):
            self._load(1 << 22)
            end = self.block.find(b"\0")
            if end < 0:
                raise struct.error("no end of word")
        self.position = self.start + end + 10

    def take(self, size: int) -> bytes:
        self._load(size)
        self.position += size
        if len(self.block) < size:
            raise struct.error("too short")
        return self.block[:size]

    def skip(self, size: int) -> None:
        self.position += size

    def _load(self, size: int) -> None:
        self.file.seek(self.position)
        self.block = self.file.read(size)
        self.start = self.position


def _truncated(path: Path | str) -> InputError:
    return InputError(f"{path} is truncated ({os.path.getsize(path):,} bytes): download or train it again")
