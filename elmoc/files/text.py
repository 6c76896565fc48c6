"""Text files: plain and gzip-compressed UTF-8, read by lines, and written."""

import errno
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from elmoc.errors import InputError
from elmoc.files.writing import atomic_path

MAX_LINE_BYTES = 1 << 26
"""A longer line is refused: whoever reads it keeps it in memory several times."""
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading raises where gzip data breaks off, is damaged, or is none."""


def open_binary(path: Path | str) -> IO[bytes]:
    """Open a plain or (by its `.gz` ending) gzip-compressed file for reading bytes.

    Raises `InputError` for one that is missing or no ordinary file (which is found out without opening it).
    """
    require_file(path)
    return gzip.open(path, "rb") if Path(path).suffix == ".gz" else open(path, "rb")  # type: ignore[return-value]


def absolute_path(path: Path | str) -> str:
    """The absolute path of a file. A link keeps its own name, which says what format the file has."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def require_file(path: Path | str) -> None:
    """Raise an `InputError` unless there is an ordinary file at `path`."""
    if os.path.isfile(path):
        return
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory, but a file is needed: give the name of a file")
    if os.path.exists(path):
        raise InputError(f"{path} is not an ordinary file: write it to one first, it is read more than once")
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ENOENT and os.path.islink(path):
            raise InputError(f"{path} is a link to a file that does not exist: mend the link") from None
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
    except ValueError:
        raise InputError(f"{str(path)!r} cannot be the name of a file: it holds a NUL character") from None
    raise InputError(f"{path} does not exist: check the name")


def read_lines(path: Path | str, *, encoding: str = "utf-8-sig") -> Iterator[str]:
    """Yield the lines of a UTF-8 text file (plain or `.gz`), without their line ends.

    Only newline characters end a line; a byte order mark before the first is left out, unless `encoding` is utf-8.
    Invalid UTF-8, lines of more than `MAX_LINE_BYTES` and truncated gzip files are `InputError`s that name file and
    line.
    """
    with open_binary(path) as file:
        number = 0
        try:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
                if len(line) > MAX_LINE_BYTES:
                    raise line_too_long(path, number)
                yield line.decode(encoding if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise invalid_utf8(path, number, error) from None
        except BROKEN_GZIP as error:
            raise broken_gzip(path, number, error) from None


@contextmanager
def open_text(path: Path | str) -> Iterator[IO[str]]:
    """Yield a UTF-8 text file to write (compressed when `path` ends in `.gz`); in place when the block ends well."""
    with atomic_path(path) as partial, open(partial, "wb") as raw:
        gz = Path(path).suffix == ".gz"
        output: Any = gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) if gz else raw
        with io.TextIOWrapper(output, encoding="utf-8", newline="\n") as file:
            yield file


def line_too_long(path: Path | str, line: int) -> InputError:
    """The error for a line of more than `MAX_LINE_BYTES`."""
    return InputError(f"{path}, line {line} is longer than {MAX_LINE_BYTES >> 20} MiB: break it into several lines")


def invalid_utf8(path: Path | str, line: int, error: UnicodeDecodeError) -> InputError:
    """The error for text that is not UTF-8: names file, line and byte."""
    byte = error.object[error.start]
    return InputError(
        f"{path}, line {line}: byte 0x{byte:02x} is not valid UTF-8; convert the file (for instance with iconv)"
    )


def broken_gzip(path: Path | str, lines: int, error: Exception) -> InputError:
    """The error for a gzip file that breaks off or is damaged after a number of whole lines, or is none."""
    after = f" after line {lines:,}" if lines else ""
    what, advice = f"the gzip data is truncated or damaged{after}", "download or compress it again"
    if not lines and str(error).startswith("Not a gzipped file"):
        what, advice = f"{what}, or the file is not compressed", f"{advice}, or take .gz off its name"
    return InputError(f"{path}: {what}")
