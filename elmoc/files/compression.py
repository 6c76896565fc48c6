"""Compression: how a plain or compressed file is opened for its bytes."""

import bz2
import gzip
import io
import lzma
import os
import re
from types import ModuleType
from typing import IO

from elmoc.errors import InputError

# How compressed files begin, whatever they are called: the modules that read them, and
# the names of those that are not read.
_BEGINNINGS: dict[bytes, ModuleType | str] = {
    b"\x1f\x8b": gzip,
    b"BZh": bz2,
    b"\xfd7zXZ": lzma,
    b"]\0\0": lzma,
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\3\4": "zip",
    b"7z\xbc\xaf": "7z",
    b'\4"M\x18': "lz4",
    b"Rar!": "rar",
}


def require_file(path: os.PathLike[str] | str) -> None:
    """Check that there is an ordinary file, which can be read more than once.

    Raises:
        InputError: there is nothing, a directory, a pipe or a device.
    """
    if os.path.isfile(path):
        return
    if not os.path.exists(path):
        raise InputError(f"{path} does not exist")
    kind = "a directory" if os.path.isdir(path) else "a pipe or a device"
    raise InputError(f"{path} is {kind}, not a file")


def compression(path: os.PathLike[str] | str) -> ModuleType | None:
    """The module that opens a compressed file; None for a plain one.

    Raises:
        InputError: the file is compressed in a way that Python does not read.
    """
    require_file(path)
    with open(path, "rb") as file:
        start = file.read(5)
    found = [kind for magic, kind in _BEGINNINGS.items() if start.startswith(magic)]
    if not found:
        return None
    if isinstance(found[0], str):
        raise InputError(
            f"{path} is compressed by {found[0]}, which is not read here: unpack it"
        )
    return found[0]


def open_binary(path: os.PathLike[str] | str) -> IO[bytes]:
    """Open a plain or compressed (gzip, bzip2, xz) file for reading bytes."""
    module = compression(path) or io
    file: IO[bytes] = module.open(path, "rb")
    return file


def unpacked_name(path: os.PathLike[str] | str) -> str:
    """The path of a compressed file without the ending that says so."""
    return re.sub(r"\.(gz|bz2|xz|lzma)$", "", str(path))
