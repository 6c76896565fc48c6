"""Locks: one writer at a time for every file and directory, and what a killed writer left is removed by the next."""

import errno
import fcntl
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from elmoc.errors import InputError

_LEFTOVER = re.compile(r"[0-9]+\.([a-z]+\.)?(partial|old)")
"""What follows `.NAME.` in the name of what a writer of NAME works with: its process, and what it is."""
_BESIDE = re.compile(rf"\.(.+?)\.(?:lock|{_LEFTOVER.pattern})")
"""The name of a lock, or of what a writer works with; the first group is the NAME."""
_held: dict[Path, int] = {}
"""What this process, or the one that it was forked from, has locked, and in which thread."""


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Keep other processes and threads from writing `path` (a file, or a directory that is replaced as a whole).

    The lock is the file `.NAME.lock` beside it, which ends with the process that holds it. A thread may lock what it
    has locked already. Raises `InputError` when another process or thread writes there, or `path` has no name.
    """
    path, lock = _with_lock(path)
    thread = threading.get_ident()  # which stays the same in a process that the thread forks
    if _held.get(path) == thread:
        yield
        return
    if _held.setdefault(path, thread) != thread:
        raise InputError(f"another thread is writing {path}: wait for it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(lock, path)
        try:
            yield
        finally:
            _release(lock, descriptor)
    finally:
        del _held[path]


def unfinished_path(path: Path) -> Path:
    """The folder for what a killed writer of `path` has left to be gone on with; it ends when `path` is there."""
    return path.parent / f".{path.name}.unfinished"


def tidy(path: Path | str) -> None:
    """Remove what a killed writer of `path` left, where there is something and nobody is writing there now."""
    path, lock = _with_lock(path)
    if lock.exists():
        with suppress(InputError, OSError), locked(path):
            pass


def tidy_folder(folder: Path) -> None:
    """Remove what killed writers left in a folder, but for what somebody is writing there now."""
    for left in list(folder.glob(".*")):
        if name := name_beside(left.name):
            with suppress(InputError), locked(folder / name):
                pass  # who has the lock of a file removes what is left of it


def name_beside(name: str) -> str | None:
    """The NAME of which a file of this name is the lock, or what a writer works with; None where it is neither."""
    found = _BESIDE.fullmatch(name)
    return None if found is None else found[1]


def _with_lock(path: Path | str) -> tuple[Path, Path]:
    """The path without links in its folder, and the file that is its lock."""
    folder, name = os.path.split(os.path.abspath(path))
    if not name:
        raise InputError(f"{path} is the root directory, which cannot be replaced: give another path")
    return Path(os.path.realpath(folder), name), Path(os.path.realpath(folder), f".{name}.lock")


def _acquire(lock: Path, path: Path) -> int:
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            error.filename = str(path)  # which the user knows
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise InputError(f"another process is writing {path}: wait for it, or stop it") from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                os.close(descriptor)
                raise
            _warn(path.parent)
            return descriptor
        if _is_at(lock, descriptor):
            try:
                _remove_leftovers(path)
            except BaseException:
                _release(lock, descriptor)
                raise
            return descriptor
        os.close(descriptor)  # the file of a writer that has just ended; it is no longer there


def _release(lock: Path, descriptor: int) -> None:
    lock.unlink(missing_ok=True)
    os.close(descriptor)


@lru_cache  # once a folder
def _warn(folder: Path) -> None:
    message = f"warning: the file system of {folder} has no locks: see to it that no other process writes there"
    print(message, file=sys.stderr)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` left; called by the one who has the lock."""
    if path.exists() and unfinished_path(path).exists():
        shutil.rmtree(unfinished_path(path))
    start = f".{path.name}."
    for each in list(path.parent.iterdir()):
        if not each.name.startswith(start) or not _LEFTOVER.fullmatch(each.name.removeprefix(start)):
            continue
        if each.suffix == ".old" and not path.exists():  # killed between two renames
            os.replace(each, path)
        elif each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()
