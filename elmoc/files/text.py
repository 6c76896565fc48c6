"""Text files: how lines are read, with the place of damage, and written."""

import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from elmoc.errors import InputError, reading
from elmoc.files.compression import PARQUET, open_binary
from elmoc.files.writing import atomic_path

# Bytes of a line of text: its reader keeps it in memory several times.
MAX_LINE_BYTES = 1 << 24


def read_lines(
    path: os.PathLike[str] | str, start: int = 0, end: int = sys.maxsize
) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file (plain or compressed), without their ends.

    Only newline characters end a line. A byte order mark before the first is left out.

    Args:
        path: of the file.
        start: the byte of the text from which on it is read, where a line begins.
        end: lines that begin before this byte are read.

    Raises:
        InputError: invalid UTF-8, or a line of more than `MAX_LINE_BYTES`; it names
            file and line.
    """
    with reading(path), open_binary(path) as file:
        # A compressed file is read from its beginning.
        if start:
            file.seek(start)
        left = end - start
        number = 0
        # A line that is too long is not read whole.
        while left > 0 and (line := file.readline(MAX_LINE_BYTES + 1)):
            left -= len(line)
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise InputError(
                    f"{place_of(path, number, start)} is longer than "
                    f"{MAX_LINE_BYTES >> 20} MiB: break it"
                )
            begins = number == 1 and start == 0
            if begins and line[257:262] == b"ustar":
                raise InputError(f"{path} is a tar archive: unpack it")
            if begins and line.startswith(PARQUET):
                raise InputError(f"{path} is a Parquet file, and lines are wanted here")
            try:
                text = line.decode("utf-8-sig" if begins else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{place_of(path, number, start)}: byte 0x{line[error.start]:02x} "
                    "is not valid UTF-8: convert the file (for instance with iconv)"
                ) from None
            yield text.rstrip("\r\n")


def place_of(path: os.PathLike[str] | str, line: int, start: int) -> str:
    """Where a line is, whose number is counted from the byte `start`."""
    place = f"{path}, line {line}"
    return f"{place} from byte {start:,} on" if start else place


@contextmanager
def open_text(path: Path | str) -> Iterator[IO[str]]:
    """Yield a UTF-8 text file to write; it is in its place when the block ends well.

    It is compressed where `path` ends in `.gz`.
    """
    with atomic_path(path) as partial, open(partial, "wb") as raw:
        output: Any = raw
        if Path(path).suffix == ".gz":
            # Without a name and a time in its head, the same text is the same file.
            output = gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0)
        with io.TextIOWrapper(output, encoding="utf-8", newline="\n") as file:
            yield file
