"""Compression: how a plain or compressed file is opened for its bytes."""

import bz2
import gzip
import io
import lzma
import os
import re
from collections.abc import Callable
from functools import partial
from typing import IO, Any

from elmoc.errors import InputError

AnyPath = os.PathLike[str] | str


def _open_zstd(path: AnyPath) -> IO[bytes]:
    import pyarrow

    return io.BufferedReader(pyarrow.input_stream(os.fspath(path), compression="zstd"))


def _open_streams(opener: Callable[[AnyPath], Any], path: AnyPath) -> IO[bytes]:
    """Open a file of one or several bzip2 or xz streams.

    The modules take what they cannot read behind the first stream for something else,
    and leave it out: where a later stream was damaged, all that follows would be lost.
    """
    file = opener(path)
    # No error is the end of the file.
    file._buffer.raw._trailing_error = ()
    return file


Opener = Callable[[AnyPath], IO[bytes]]
# How compressed files begin, whatever they are called: what opens them, and the names
# of those that are not read.
_BEGINNINGS: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": partial(_open_streams, bz2.open),
    b"\xfd7zXZ": partial(_open_streams, lzma.open),
    b"]\0\0": partial(_open_streams, lzma.open),
    b"\x28\xb5\x2f\xfd": _open_zstd,
    # `pzstd` writes the sizes of its frames first.
    b"\x50\x2a\x4d\x18": _open_zstd,
    b"PK\3\4": "zip",
    b"7z\xbc\xaf": "7z",
    b'\4"M\x18': "lz4",
    b"Rar!": "rar",
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
        said = f"is {kind}, not a file" if os.path.exists(path) else "does not exist"
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
            f"{path} is compressed by {found}, which is not read here: unpack it"
        )
    return found


def open_binary(path: AnyPath) -> IO[bytes]:
    """Open a plain or compressed (gzip, bzip2, xz, zstd) file for reading bytes."""
    opener = compression(path)
    return opener(path) if opener else open(path, "rb")


def unpacked_name(path: AnyPath) -> str:
    """The path of a compressed file without the ending that says so."""
    return re.sub(r"(?i)\.(gz|bz2|xz|lzma|zst)$", "", str(path))
