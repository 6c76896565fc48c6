"""Writing: how files and directories appear whole or not at all, and whether there is room for them."""

import ctypes
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.locks import locked, remove


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a path beside `path` to write a file to; it is renamed to `path` when the block ends well, else removed.

    The parent directory is made when it is missing, `path` is locked meanwhile (see `locked`), and the content is on
    disk before the rename. The file gets the permissions that the umask leaves, whatever wrote it.
    """
    path = Path(path)
    with temporary_path(path) as partial:
        partial.touch()
        mode = partial.stat().st_mode
        yield partial
        os.chmod(partial, mode)
        _to_disk(partial)
        os.replace(partial, path)


@contextmanager
def atomic_directory(path: Path | str, *, sync: bool = True) -> Iterator[Path]:
    """Yield a directory beside `path` to fill; it takes the place of `path` when the block ends well, else is removed.

    Locks and permissions are those of `atomic_path`. Without `sync`, a machine that fails may leave a directory whose
    files are damaged; that is for what is only worked with, and checked before it is used again.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, but a directory is to be written: give another name")
    old = path.with_name(f".{path.name}.old")
    with temporary_path(path) as partial:
        if old.exists() and not path.exists():  # another writer was killed between two renames
            os.replace(old, path)
        remove(old)
        partial.mkdir()
        yield partial
        mode = partial.stat().st_mode & 0o666
        for file in partial.iterdir():
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # a hard link was not written here
                continue
            os.chmod(file, mode)
            if sync:
                _to_disk(file)
        if not path.exists():
            os.replace(partial, path)
        elif not _exchanged(partial, path):
            os.replace(path, old)
            os.replace(partial, path)
        remove(old)


@contextmanager
def temporary_path(path: Path | str, what: str = "") -> Iterator[Path]:
    """Yield a path beside `path` for a file or directory that is needed while `path` is made, e.g. its `what` text.

    `path` is locked meanwhile. What is there is removed when the block ends, and before it begins: a killed writer may
    have left it.
    """
    path = Path(path)
    with locked(path):
        temporary = path.with_name(f".{path.name}.{what}{'.' * bool(what)}partial")
        remove(temporary)
        try:
            yield temporary
        except OSError as error:
            error.filename = error.filename or str(path)  # which a full disk does not name
            raise
        finally:
            remove(temporary)


def _to_disk(file: Path) -> None:
    with open(file, "rb") as written:
        os.fsync(written.fileno())


def _exchanged(first: Path, second: Path) -> bool:
    """Exchange two directories in one step; False where the file system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of Linux
    return rename is not None and rename(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


def require_space(path: Path | str, needed_bytes: int) -> None:
    """Raise an `InputError` when the disk that `path` will be written to has less than `needed_bytes` free."""
    folder = Path(os.path.realpath(path))
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise InputError(
            f"{path} needs about {human_bytes(needed_bytes)}, but its disk has {human_bytes(free)} free: free some "
            "space or write elsewhere"
        )


def reserve_space(path: Path | str, size: int) -> None:
    """Make a file of `size` bytes whose blocks are on the disk: in a memory map, a full disk would end the process."""
    with open(path, "wb") as file:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)


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
