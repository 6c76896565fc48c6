"""Compression: how a plain or compressed file is opened for its bytes."""

import bz2
import gzip
import io
import lzma
import os
import re
from collections.abc import Callable, Iterator
from typing import IO, Any

from elmoc.errors import InputError

AnyPath = os.PathLike[str] | str
# Bytes of a zstd file that are unpacked at once: 128 KiB of text may be packed in four.
_ZSTD_BYTES = 1 << 12
# The largest window of `zstd --long=31`, by which some corpora are packed.
_ZSTD_WINDOW = 1 << 31


class _Unpacked(io.RawIOBase):
    """A file of what blocks of bytes hold, one behind the other."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        # An empty one would be the end of the file.
        self._blocks = filter(None, blocks)
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._block = self._block or memoryview(next(self._blocks, b""))
        size = min(len(buffer), len(self._block))
        buffer[:size] = self._block[:size]
        self._block = self._block[size:]
        return size


def _open_zstd(path: AnyPath) -> IO[bytes]:
    return io.BufferedReader(_Unpacked(_unpacked_zstd(path)))


def _unpacked_zstd(path: AnyPath) -> Iterator[bytes]:
    """Yield the blocks of a zstd file. The library's own file ends, without a word,
    behind the first frame, and where a file is cut.
    """
    from zstandard import ZstdDecompressor

    frames = ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame: Any = None
    with open(path, "rb") as file:
        while packed := file.read(_ZSTD_BYTES):
            while packed:
                frame = frame or frames.decompressobj()
                yield frame.decompress(packed)
                packed = frame.unused_data
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("it is cut: its last frame has no end")


Opener = Callable[[AnyPath], IO[bytes]]
# How compressed files begin, whatever they are called: what opens them, and the names
# of those that are not read.
_BEGINNINGS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"]\0\0": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstd,
    # `pzstd` writes the sizes of its frames first.
    b"\x50\x2a\x4d\x18": _open_zstd,
    b"PK\3\4": "zip",
    b"7z\xbc\xaf": "7z",
    b'\4"M\x18': "lz4",
    b"Rar!": "rar",
}
_UNPACKERS = {
    "gz": "gunzip -k",
    "bz2": "bunzip2 -k",
    "xz": "unxz -k",
    "zst": "unzstd",
    "zip": "unzip",
    "7z": "7z x",
    "lz4": "unlz4",
    "rar": "unrar x",
}
# How Parquet files begin, whose columns are compressed.
PARQUET = b"PAR1"
# The beginnings of those that are read.
PACKED = (*(magic for magic, kind in _BEGINNINGS.items() if callable(kind)), PARQUET)


def require_file(path: AnyPath) -> None:
    """Check that there is an ordinary file, which can be read more than once.

    Raises:
        InputError: there is nothing, a directory, a pipe or a device.
    """
    if not os.path.isfile(path):
        kind = "a directory" if os.path.isdir(path) else "a pipe or a device"
        is_there = os.path.exists(path)
        said = f"is {kind}, not a file" if is_there else "does not exist"
        raise InputError(f"{path} {said}")


def first_bytes(path: AnyPath, size: int = 5) -> bytes:
    """The beginning of an ordinary file, by which its kind is known."""
    require_file(path)
    with open(path, "rb") as file:
        return file.read(size)


def compression(path: AnyPath) -> Opener | None:
    """What opens a compressed file; None for a plain one.

    Raises:
        InputError: the file is compressed in a way that is not read.
    """
    start = first_bytes(path)
    kinds = (kind for magic, kind in _BEGINNINGS.items() if start.startswith(magic))
    found = next(kinds, None)
    if isinstance(found, str):
        raise InputError(
            f"{path} is compressed by {found}, which is not read here: "
            f"{unpacking_advice(path, found)}"
        )
    return found


def open_binary(path: AnyPath) -> IO[bytes]:
    """Open a plain or compressed (gzip, bzip2, xz, zstd) file for reading bytes."""
    opener = compression(path)
    return opener(path) if opener else open(path, "rb")


def unpacked_name(path: AnyPath) -> str:
    """The path of a compressed file without the ending that says so."""
    return re.sub(r"\.(gz|bz2|xz|lzma|zst)$", "", str(path))


def unpacking_advice(path: AnyPath, kind: str | None = None) -> str:
    """`unpack it (unzip FILE)`: by a kind of compression, or the ending of the path."""
    command = _UNPACKERS.get(kind or os.path.splitext(path)[1].removeprefix("."))
    return f"unpack it ({command} {path})" if command else "unpack it"
