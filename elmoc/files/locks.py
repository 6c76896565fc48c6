"""Locks: how a file or a directory has one writer at a time."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def remove(path: Path) -> None:
    """Remove a file or a directory, where it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def tidy_folder(folder: Path) -> None:
    """Remove what killed writers left in a folder, but for what somebody is writing there now."""
    for left in list(folder.glob(".*.partial")):
        with suppress(InputError), locked(folder / left.name[1:].removesuffix(".partial")):
            remove(left)
