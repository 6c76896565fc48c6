"""Writing: how files and directories appear whole, by one writer at a time."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from elmoc.errors import InputError


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Keep other processes and threads from writing a file, or a whole directory.

    The lock is the file `.NAME.lock` beside it; the system ends it with the process
    that holds it. A thread may lock what it has locked already.

    Raises:
        InputError: another process or thread writes there.
    """
    folder, name = os.path.split(os.path.abspath(path))
    # A folder may have several paths, but the lock is to be one file.
    file = Path(os.path.realpath(folder)) / f".{name}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, blocking=False, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process is writing {file.parent / name}: wait for it, or stop it"
        ) from None
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            # While it is held, so that whoever has it open sees that it is gone.
            file.unlink(missing_ok=True)
        lock.release()


@contextmanager
def temporary_path(path: Path | str, what: str = "") -> Iterator[Path]:
    """Yield a path beside `path` for a file or directory that is needed while `path` is
    made; it is removed when the block ends.

    `path` is locked meanwhile, and its folder is made where it is missing.

    Args:
        path: what is made; an `OSError`, as of a full disk, names it.
        what: tells several temporary files of one `path` apart.
    """
    path = Path(path)
    ending = f"{what}.partial" if what else "partial"
    with locked(path):
        temporary = path.with_name(f".{path.name}.{ending}")
        # A writer that was killed may have left it.
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

    Args:
        path: the file; it gets the permissions that the umask leaves.
        sync: whether the content is on disk before the rename. Files that are only
            worked with can do without.
    """
    with temporary_path(path) as partial:
        partial.touch()
        # Of a new file, whatever writes it: a library may make it private.
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

    Raises:
        InputError: there is a file at `path`.
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
            is_own = not file.is_symlink() and file.stat().st_nlink == 1
            # A file with two names, or a link, is also another's.
            if file.is_file() and is_own:
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
    """Check that there is nothing at an output path.

    Raises:
        InputError: there is something; nothing is overwritten.
    """
    # An empty name is the working directory, as `Path` reads it.
    if os.path.lexists(Path(path)):
        raise InputError(
            f"{path} exists already: remove it or choose another output path"
        )
