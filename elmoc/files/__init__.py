"""Files: how text and arrays are read, and how files and directories appear whole, by
one writer at a time.

    records     JSON and TOML, read into typed dataclasses
    hdf5        HDF5 files, for reading
    checksums   hashes by which content is known, and by which damage is found

No size that a file says is believed beyond the limits below: they bound what a reader
    allocates, whatever the file.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout

from elmoc.errors import InputError, reading

# bytes of an array that is unpacked, or arranged, at once: 40,000 words at the paper's
# size
MOST_BYTES = 1 << 29
# bytes of a JSON file: as objects it takes up to thirty times as much
MOST_RECORD_BYTES = 1 << 23
# bytes of a TOML file: a key takes its reader the square of the number of its dots, two
# seconds for 16,000
MOST_TOML_BYTES = 1 << 15
# sentences of a feature file, which are looked at one by one
MOST_SENTENCES = 1 << 22
# words of a sentence in a feature file
MOST_WORDS = 40_000
# a longer line is refused: whoever reads it keeps it in memory several times
MAX_LINE_BYTES = 1 << 24
# how compressed files begin, whatever they are called: what the standard library reads,
# and what it does not
_READ = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ": lzma, b"]\0\0": lzma}
_NOT_READ = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\3\4": "zip",
    b"7z\xbc\xaf": "7z",
    b'\4"M\x18': "lz4",
    b"Rar!": "rar",
}
# numbers of an array that are looked at together
_BLOCK_NUMBERS = 1 << 18


def compression(path: os.PathLike[str] | str) -> ModuleType | None:
    """What reads a compressed file; None for a plain one. Raises `InputError` where
    nothing in Python does.
    """
    require_file(path)
    with open(path, "rb") as file:
        start = file.read(5)
    for magic, name in _NOT_READ.items():
        if start.startswith(magic):
            raise InputError(
                f"{path} is compressed by {name}, which is not read here: unpack it"
            )
    return next(
        (module for magic, module in _READ.items() if start.startswith(magic)), None
    )


def unpacked_name(path: os.PathLike[str] | str) -> str:
    """The path of a compressed file without the ending that says so."""
    return re.sub(r"\.(gz|bz2|xz|lzma)$", "", str(path))


def open_binary(path: os.PathLike[str] | str) -> IO[bytes]:
    """Open a plain or compressed (gzip, bzip2, xz) file for reading bytes."""
    file: IO[bytes] = (compression(path) or io).open(path, "rb")
    return file


def require_file(path: os.PathLike[str] | str) -> None:
    """Raise an `InputError` unless there is an ordinary file at `path`, and no pipe,
    say: it is read more than once.
    """
    if not os.path.isfile(path):
        kind = "a directory" if os.path.isdir(path) else "a pipe or a device"
        raise InputError(
            f"{path} is {kind}, not a file"
            if os.path.exists(path)
            else f"{path} does not exist"
        )


def read_lines(
    path: os.PathLike[str] | str, start: int = 0, end: int = sys.maxsize
) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file (plain or compressed), without their line
    ends.

    Only newline characters end a line; a byte order mark before the first is left out.

    Args:
        path: of the file.
        start: the byte of the text from which on it is read, where a line begins.
        end: lines that begin before this byte are read.

    Raises:
        InputError: invalid UTF-8, or a line of more than `MAX_LINE_BYTES`; it names
            file and line.
    """
    with reading(path), open_binary(path) as file:
        file.seek(start)
        left = end - start
        number = 0
        while left > 0 and (line := file.readline(MAX_LINE_BYTES + 1)):
            left -= len(line)
            number += 1
            where = f"{path}, line {number}"
            if start:
                where = f"{where} from byte {start:,} on"
            if len(line) > MAX_LINE_BYTES:
                most = MAX_LINE_BYTES >> 20
                raise InputError(f"{where} is longer than {most} MiB: break it")
            begins = number == 1 and start == 0
            if begins and line[257:262] == b"ustar":
                raise InputError(f"{path} is a tar archive: unpack it")
            try:
                text = line.decode("utf-8-sig" if begins else "utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} is not valid UTF-8"
                raise InputError(
                    f"{where}: {byte}: convert the file (for instance with iconv)"
                ) from None
            yield text.rstrip("\r\n")


@contextmanager
def open_text(path: Path | str) -> Iterator[IO[str]]:
    """Yield a UTF-8 text file to write (compressed when `path` ends in `.gz`); in place
    when the block ends well.
    """
    with atomic_path(path) as partial, open(partial, "wb") as raw:
        gz = Path(path).suffix == ".gz"
        output: Any = (
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0)
            if gz
            else raw
        )
        with io.TextIOWrapper(output, encoding="utf-8", newline="\n") as file:
            yield file


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.save(file, array)


def load_array(
    path: Path | str, *, shape: tuple[int | None, ...], dtype: Any, mmap: bool = False
) -> np.ndarray:
    """Read a `.npy` file of a known shape (None is any length) and type; memory-mapped
    read-only with `mmap`.

    Raises `InputError` when it is truncated, damaged, or of another shape or type.
    """
    with reading(path):
        array = np.load(
            path, mmap_mode="r", allow_pickle=False
        )  # a map allocates nothing, whatever the header says
        is_like = all(
            wanted in (None, length)
            for wanted, length in zip(shape, array.shape, strict=True)
        )
        if not is_like or array.dtype != dtype or not array.flags.c_contiguous:
            raise ValueError(
                f"shape {array.shape} and type {array.dtype}, not {shape} and {np.dtype(dtype)}"
            )
    return array if mmap else np.array(array)


def all_finite(array: np.ndarray) -> bool:
    """Whether no number of a float array is NaN or infinite; reads it in blocks, at the
    speed of the memory.

    As an integer without its sign, a number that is not finite is at least as large as
    infinity. NumPy's own test takes 14 times as long for float16.
    """
    bits = np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)
    infinity = int(np.array(np.inf, array.dtype).view(bits))
    without_sign = bits.type(2 ** (8 * bits.itemsize - 1) - 1)
    flat = array.reshape(-1).view(bits)
    return all(
        int((flat[start : start + _BLOCK_NUMBERS] & without_sign).max()) < infinity
        for start in range(0, len(flat), _BLOCK_NUMBERS)
    )


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Keep other processes and threads from writing `path` (a file, or a directory that
    is replaced as a whole).

    The lock is the file `.NAME.lock` beside it; the system ends it with the process
    that holds it. A thread may lock what it has locked already. Raises `InputError`
    when another process or thread writes there.
    """
    path = Path(
        os.path.realpath(os.path.dirname(os.path.abspath(path))),
        os.path.basename(os.path.abspath(path)),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f".{path.name}.lock")
    lock = FileLock(file, blocking=False, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process is writing {path}: wait for it, or stop it"
        ) from None
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            file.unlink(
                missing_ok=True
            )  # while it is held: who waits with it open sees that it is gone
        lock.release()


@contextmanager
def temporary_path(path: Path | str, what: str = "") -> Iterator[Path]:
    """Yield a path beside `path` for a file or directory that is needed while `path` is
    made, e.g. its `what` text.

    `path` is locked meanwhile, and its folder is made when it is missing. What is there
    is removed when the block ends,
    and before it begins: a killed writer may have left it. A full disk is told with
    `path`.
    """
    path = Path(path)
    with locked(path):
        temporary = path.with_name(f".{path.name}.{what}{'.' * bool(what)}partial")
        remove(temporary)
        try:
            yield temporary
        except OSError as error:
            error.filename = error.filename or str(path)
            raise
        finally:
            remove(temporary)


@contextmanager
def atomic_path(path: Path | str, *, sync: bool = True) -> Iterator[Path]:
    """Yield a path beside `path` to write a file to; it is renamed to `path` when the
    block ends well, else removed.

    The content is on disk before the rename; without `sync` that is left to the system,
    for files that are only worked with. The file gets the permissions that the umask
    leaves, whatever wrote it.
    """
    with temporary_path(path) as partial:
        partial.touch()
        mode = partial.stat().st_mode
        yield partial
        os.chmod(partial, mode)
        if sync:
            _to_disk(partial)
        os.replace(partial, path)


@contextmanager
def atomic_directory(path: Path | str) -> Iterator[Path]:
    """Yield a directory beside `path` to fill; it takes the place of `path` when the
    block ends well, else is removed.

    Permissions are as in `atomic_path`. Between two renames there is no `path`: a
    writer that is killed there leaves `.NAME.old`, which the next writer puts back.
    """
    path = Path(path)
    if path.is_file():
        raise InputError(
            f"{path} is a file, but a directory is to be written: give another name"
        )
    old = path.with_name(f".{path.name}.old")
    with temporary_path(path) as partial:
        if old.exists() and not path.exists():
            os.replace(old, path)
        partial.mkdir()
        yield partial
        mode = partial.stat().st_mode & 0o666
        for file in partial.iterdir():
            if (
                file.is_file() and not file.is_symlink() and file.stat().st_nlink == 1
            ):  # a link is another's file, too
                os.chmod(file, mode)
                _to_disk(file)
        remove(old)
        if path.exists():
            os.replace(path, old)
        os.replace(partial, path)
        remove(old)


def _to_disk(file: Path) -> None:
    with open(file, "rb") as written:
        os.fsync(written.fileno())


def remove(path: Path) -> None:
    """Remove a file or a directory, where it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def refuse_existing(path: Path | str) -> None:
    """Raise an `InputError` when the output `path` exists: nothing is overwritten."""
    if os.path.lexists(Path(path)):  # of an empty name, the working directory
        raise InputError(
            f"{path} exists already: remove it or choose another output path"
        )


def human_bytes(size: float) -> str:
    """A number of bytes with its unit, e.g. `1.5 GB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
