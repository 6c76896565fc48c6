"""Writing: how files and directories appear whole or not at all, by one writer at a time."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elmoc.errors import InputError


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Keep other processes and threads from writing `path` (a file, or a directory that is replaced as a whole).

    The lock is the file `.NAME.lock` beside it; the system ends it with the process that holds it. A thread may lock
    what it has locked already. Raises `InputError` when another process or thread writes there.
    """
    path = Path(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(os.path.abspath(path)))
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f".{path.name}.lock")
    lock = FileLock(file, blocking=False, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(f"another process is writing {path}: wait for it, or stop it") from None
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            file.unlink(missing_ok=True)  # while it is held: who waits with it open sees that it is gone
        lock.release()


@contextmanager
def temporary_path(path: Path | str, what: str = "") -> Iterator[Path]:
    """Yield a path beside `path` for a file or directory that is needed while `path` is made, e.g. its `what` text.

    `path` is locked meanwhile, and its folder is made when it is missing. What is there is removed when the block ends,
    and before it begins: a killed writer may have left it.
    """
    path = Path(path)
    with locked(path):
        temporary = path.with_name(f".{path.name}.{what}{'.' * bool(what)}partial")
        remove(temporary)
        try:
            yield temporary
        finally:
            remove(temporary)


@contextmanager
def atomic_path(path: Path | str, *, sync: bool = True) -> Iterator[Path]:
    """Yield a path beside `path` to write a file to; it is renamed to `path` when the block ends well, else removed.

    The content is on disk before the rename; without `sync` that is left to the system, for files that are only worked
    with. The file gets the permissions that the umask leaves, whatever wrote it.
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
    """Yield a directory beside `path` to fill; it takes the place of `path` when the block ends well, else is removed.

    Permissions are those of `atomic_path`. Between two renames there is no `path`; what a writer that is killed there
    leaves as `.NAME.old` is put back by the next one.
    """
    path = Path(path)
    if path.is_file():
        raise InputError(f"{path} is a file, but a directory is to be written: give another name")
    old = path.with_name(f".{path.name}.old")
    with temporary_path(path) as partial:
        if old.exists() and not path.exists():
            os.replace(old, path)
        partial.mkdir()
        yield partial
        mode = partial.stat().st_mode & 0o666
        for file in partial.iterdir():
            if file.is_file() and not file.is_symlink() and file.stat().st_nlink == 1:  # a link is another's file, too
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
        raise InputError(f"{path} exists already: remove it or choose another output path")


def human_bytes(size: float) -> str:
    """A number of bytes with its unit, e.g. `1.5 GB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
