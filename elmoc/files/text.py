"""Text files: how plain and compressed UTF-8 is read by lines, and written."""

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from elmoc.errors import InputError, reading
from elmoc.files.writing import atomic_path

# a longer line is refused: whoever reads it keeps it in memory several times
MAX_LINE_BYTES = 1 << 26
# how compressed files begin, whatever they are called: what the standard library reads, and what it does not
_READ = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ": lzma}
_NOT_READ = {b"\x28\xb5\x2f\xfd": "zstd", b"PK\3\4": "zip", b"7z\xbc\xaf": "7z", b'\4"M\x18': "lz4"}


def compression(path: Path | str) -> ModuleType | None:
    """What reads a compressed file; None for a plain one. Raises `InputError` where nothing in Python does."""
    require_file(path)
    with open(path, "rb") as file:
        start = file.read(5)
    for magic, name in _NOT_READ.items():
        if start.startswith(magic):
            raise InputError(f"{path} is compressed by {name}, which is not read here: unpack it")
    return next((module for magic, module in _READ.items() if start.startswith(magic)), None)


def open_binary(path: Path | str) -> IO[bytes]:
    """Open a plain or compressed (gzip, bzip2, xz) file for reading bytes."""
    file: IO[bytes] = (compression(path) or io).open(path, "rb")
    return file


def require_file(path: Path | str) -> None:
    """Raise an `InputError` unless there is an ordinary file at `path`, and no pipe, say: it is read more than once."""
    if not os.path.isfile(path):
        raise InputError(f"{path} does not exist, or is not an ordinary file")


def read_lines(path: Path | str) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file (plain or compressed), without their line ends.

    Only newline characters end a line; a byte order mark before the first is left out. Invalid UTF-8 and lines of more
    than `MAX_LINE_BYTES` are `InputError`s that name file and line.
    """
    with reading(path), open_binary(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
            if len(line) > MAX_LINE_BYTES:
                raise InputError(f"{path}, line {number} is longer than {MAX_LINE_BYTES >> 20} MiB: break it")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} is not valid UTF-8"
                raise InputError(f"{path}, line {number}: {byte}: convert the file (for instance with iconv)") from None
            yield text.rstrip("\r\n")


@contextmanager
def open_text(path: Path | str) -> Iterator[IO[str]]:
    """Yield a UTF-8 text file to write (compressed when `path` ends in `.gz`); in place when the block ends well."""
    with atomic_path(path) as partial, open(partial, "wb") as raw:
        gz = Path(path).suffix == ".gz"
        output: Any = gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) if gz else raw
        with io.TextIOWrapper(output, encoding="utf-8", newline="\n") as file:
            yield file
