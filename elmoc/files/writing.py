"""Writing: files and directories that appear whole or not at all, and disks that are full."""

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.locks import locked

FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_BYTES = 1 << 16
"""A disk with less free space than this counts as full."""


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a path beside `path` to write a file to; it is renamed to `path` when the block ends well, else removed.

    The parent directory is made when it is missing, `path` is locked meanwhile (see `locked`), and the content is on
    disk before the rename. The file gets the permissions that the umask leaves, whatever wrote it.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a directory, but a file is to be written: give the name of a file")
    with locked(path):
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            with full_disk_is_clear(path), _named(path, partial):
                partial.touch()
                mode = partial.stat().st_mode
                yield partial
                os.chmod(partial, mode)
                _to_disk(partial)
                os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path | str, *, sync: bool = True) -> Iterator[Path]:
    """Yield a directory beside `path` to fill; it takes the place of `path` when the block ends well, else is removed.

    Locks, permissions and errors are those of `atomic_path`. Without `sync`, a machine that fails may leave a directory
    whose files are damaged; that is for what is only worked with, and checked before it is used again.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, but a directory is to be written: give another name")
    with locked(path):
        partial, old = (path.with_name(f".{path.name}.{os.getpid()}.{what}") for what in ("partial", "old"))
        try:
            with full_disk_is_clear(path), _named(path, partial):
                partial.mkdir()
                yield partial
                mode = partial.stat().st_mode & 0o666
                for file in partial.iterdir():
                    if not _is_new(file):
                        continue
                    os.chmod(file, mode)
                    if sync:
                        _to_disk(file)
                if not path.exists():
                    os.replace(partial, path)
                elif not _exchanged(partial, path):
                    os.replace(path, old)
                    os.replace(partial, path)
        finally:
            if old.exists() and not path.exists():
                os.replace(old, path)
            for each in (partial, old):
                shutil.rmtree(each, ignore_errors=True)


@contextmanager
def temporary_path(path: Path | str, what: str) -> Iterator[Path]:
    """Yield a path beside `path` for a file that is needed while `path` is made, e.g. its `what` text.

    It is this process's own, and removed when the block ends, or by the next writer of `path` after a kill.
    """
    path = Path(path)
    with locked(path), full_disk_is_clear(path):
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{what}.partial")
        try:
            with _named(path, temporary):
                yield temporary
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _named(path: Path, partial: Path) -> Iterator[None]:
    """Let errors of the operating system name `path`, which the user knows, for `partial` and what is in it."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(str(partial)):
            error.filename = f"{path}{error.filename.removeprefix(str(partial))}"
        raise


def _is_new(file: Path) -> bool:
    """Whether it is a regular file that was written here, and no link to another.

    Directories are none, though some file systems (btrfs) count one link of them, too.
    """
    found = file.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def _to_disk(file: Path) -> None:
    with open(file, "rb") as written:
        os.fsync(written.fileno())


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two directories in one step; False where the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of Linux
    return rename is not None and rename(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


@contextmanager
def full_disk_is_clear(path: Path) -> Iterator[None]:
    """Turn an exception of the block into an `InputError` when the disk of `path` is full.

    The libraries that write for us (HDF5, safetensors, PyTorch) each report a full disk as an exception of their own.
    An error about a file that may not grow (ulimit -f) gets its name.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError):
            raise
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            error.filename = error.filename or str(path)
            raise
        full = (isinstance(error, OSError) and error.errno in FULL) or "No space left" in str(error)
        if not full and shutil.disk_usage(_existing(path)).free >= FULL_BYTES:
            raise
        raise InputError(
            f"{path} could not be written, its disk ({_mount_point(path)}) is full: free some space there and run the "
            "command again"
        ) from None


def require_space(path: Path | str, needed_bytes: int) -> None:
    """Raise an `InputError` when the disk that `path` will be written to has less than `needed_bytes` free."""
    free = shutil.disk_usage(_existing(path)).free
    if free < needed_bytes:
        raise _too_small(path, needed_bytes, free)


def reserve_space(path: Path | str, size: int, *, name: Path | str | None = None) -> None:
    """Make a file of `size` bytes whose blocks are on the disk already, so that a memory map of it can be written.

    Raises `InputError` when the disk is too full for it, which calls the file `name` (by default `path`); the file is
    gone again then.
    """
    try:
        with open(path, "wb") as file:
            if size:
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        if error.errno not in FULL:
            raise
        raise _too_small(name or path, size, shutil.disk_usage(_existing(path)).free) from None


def _too_small(path: Path | str, needed: int, free: int) -> InputError:
    return InputError(
        f"{path} needs about {human_bytes(needed)}, but its disk ({_mount_point(path)}) has {human_bytes(free)} free, "
        f"{human_bytes(max(0, needed - free))} too little: free some space or write elsewhere"
    )


def _existing(path: Path | str) -> Path:
    """The folder in which `path` is, or the nearest one above it that is there."""
    folder = Path(os.path.realpath(path))
    while not folder.exists():
        folder = folder.parent
    return folder


def _mount_point(path: Path | str) -> Path:
    folder = _existing(path)
    while not os.path.ismount(folder):
        folder = folder.parent
    return folder


def refuse_existing(path: Path | str) -> None:
    """Raise an `InputError` when the output `path` exists: nothing is overwritten."""
    path = Path(path)  # of an empty name this is the working directory
    if os.path.lexists(path):
        raise InputError(f"{path} exists already: remove it or choose another output path")


def human_bytes(size: float) -> str:
    """A number of bytes with its unit, e.g. `1.5 GB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
