"""Files: how text, JSON and arrays are opened and checked, and written whole or not at all.

A file is opened here unless its format has a module of its own, so that one that is missing, truncated, damaged or of
another version is an `InputError` that names it and says what to do.
"""

import errno
import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from elmoc.errors import InputError

FULL_BYTES = 1 << 16
"""A disk with less free space than this counts as full."""


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it is renamed to `path` when the block ends well, else removed.

    The parent directory is made when it is missing. The content is on disk before the rename.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with full_disk_is_clear(path):
            yield partial
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def full_disk_is_clear(path: Path) -> Iterator[None]:
    """Turn an exception of the block into an `InputError` when the disk of `path` is full.

    The libraries that write for us (HDF5, safetensors, PyTorch) each report a full disk as an exception of their own.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError):
            raise
        full = (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left" in str(error)
        if not full and shutil.disk_usage(path.parent).free >= FULL_BYTES:
            raise
        raise InputError(f"{path} could not be written, the disk is full: free some space and go on") from None


def write_json(path: Path | str, value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path | str) -> Any:
    """Read a JSON file; a missing or broken one is an `InputError`."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid JSON ({error}): it may be truncated; make it again") from None


def check_version(
    path: Path | str, info: Any, expected_format: str, version: int, *, oldest: int | None = None
) -> None:
    """Raise an `InputError` unless `info` (the content of `path`) is of this format and of a version known here.

    Known are the versions from `oldest` (by default `version` alone) to `version`.
    """
    if not isinstance(info, dict) or info.get("format") != expected_format:
        raise InputError(f"{path} is not of the format {expected_format}")
    if info.get("version") not in range(version if oldest is None else oldest, version + 1):
        raise InputError(
            f"{path} has version {info.get('version')} of the format {expected_format}, this elmoc reads version "
            f"{version}: use the elmoc that wrote it, or make it again"
        )


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.save(file, array)


def load_array(path: Path | str, mmap: bool = False) -> np.ndarray:
    """Read a `.npy` file (memory-mapped read-only with `mmap`); a missing or truncated one is an `InputError`."""
    try:
        return np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path} is truncated or not a .npy file ({error}): make it again") from None


def refuse_existing(path: Path | str) -> None:
    """Raise an `InputError` when the output `path` exists: nothing is overwritten."""
    if Path(path).exists():
        raise InputError(f"{path} exists already: remove it or choose another output path")


def require_space(path: Path | str, needed_bytes: int) -> None:
    """Raise an `InputError` when the disk that `path` will be written to has less than `needed_bytes` free."""
    folder = Path(path).absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise InputError(
            f"{path} needs about {human_bytes(needed_bytes)}, but its disk has {human_bytes(free)} free: "
            "free some space or write elsewhere"
        )


def human_bytes(size: float) -> str:
    """A number of bytes with its unit, e.g. `1.5 GB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def open_binary(path: Path | str) -> IO[bytes]:
    """Open a plain or (by its `.gz` ending) gzip-compressed file for reading bytes."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a directory, but a file is needed")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not an ordinary file: write the text to one first, it is read more than once")
    try:
        return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")  # type: ignore[return-value]
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None


def read_lines(path: Path | str) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file (plain or `.gz`), without their line ends.

    Only newline characters end a line; a byte order mark before the first is left out. Invalid UTF-8 and truncated
    gzip files are `InputError`s that name file and line.
    """
    with open_binary(path) as file:
        number = 0
        try:
            for number, line in enumerate(file, 1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise invalid_utf8(path, number, error) from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise broken_gzip(path, number, error) from None


def invalid_utf8(path: Path | str, line: int, error: UnicodeDecodeError) -> InputError:
    """The error for text that is not UTF-8: names file, line and byte."""
    byte = error.object[error.start]
    return InputError(
        f"{path}, line {line}: byte 0x{byte:02x} is not valid UTF-8; convert the file (for instance with iconv)"
    )


def broken_gzip(path: Path | str, line: int, error: Exception) -> InputError:
    """The error for a gzip file that breaks off or is damaged after `line` lines."""
    return InputError(
        f"{path}: the gzip data is truncated or damaged after line {line} ({error}); download or compress it again"
    )


def fingerprint(*parts: bytes) -> str:
    """A short content hash (16 hexadecimal digits) of the given byte strings."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def fingerprint_file(path: Path | str, blocks: int = 64, block_bytes: int = 1 << 16) -> str:
    """A content hash of a file that is quick for large ones.

    It covers the size and `blocks` blocks of `block_bytes` spread evenly over the file (first and last included); a
    file smaller than all the blocks together is covered whole.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if size <= blocks * block_bytes:
            return fingerprint(file.read())
        parts = [size.to_bytes(8, "little")]
        for index in range(blocks):
            file.seek((size - block_bytes) * index // (blocks - 1))
            parts.append(file.read(block_bytes))
    return fingerprint(*parts)
