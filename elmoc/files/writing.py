"""Writing: how files and directories appear whole, by one writer at a time."""

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

from elmoc.errors import InputError, warn
from elmoc.files.checksums import checksum_line, checksum_path
from elmoc.files.compression import require_file

# What a system call for a lock says on a file system that has none, as on NFS without
# its daemon, and on Lustre.
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
# What a system call says of a disk that takes no more.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SYSTEM_ERROR = r"(os error |Errno )(\d+)"
# This variable says to child processes that their user knows of missing locks.
_WARNED = "ELMOC_WARNED_OF_LOCKS"
# Seconds in which a lock file is looked at again: the first look removes one that a
# process of this machine has left.
_SOFT_SECONDS = 0.2


@contextmanager
def locked(
    path: Path | str, *, new: bool = False, seconds: float = 0.0
) -> Iterator[None]:
    """Keep other processes and threads from writing a file, or a whole directory.

    The lock is the file `.NAME.lock` beside it; the system ends it with the process
    that holds it. Where the file system has no locks, the file `.NAME.soft-lock` says
    who writes. A thread may lock what it has locked already.

    Args:
        path: of the file or directory.
        new: whether nothing may be there yet.
        seconds: how long another writer is waited for.

    Raises:
        InputError: another process or thread writes there, or something `new` is there.
    """
    folder, name = os.path.split(os.path.abspath(path))
    # A folder may have several paths, but the lock is to be one file.
    real_folder = Path(os.path.realpath(folder))
    real_folder.mkdir(parents=True, exist_ok=True)
    is_soft = not _has_locks(real_folder)
    kind = SoftFileLock if is_soft else FileLock
    file = real_folder / f".{name}.{'soft-lock' if is_soft else 'lock'}"
    lock = kind(file, is_singleton=True)
    try:
        lock.acquire(max(seconds, _SOFT_SECONDS * is_soft), blocking=True)
    except Timeout:
        # Its number and its machine.
        holder = " on ".join(file.read_text().split()[:2]) if is_soft else ""
        advice = f"remove {file} if it has ended" if is_soft else "stop it"
        raise InputError(
            f"{f'process {holder}' if holder else 'another process'} is writing "
            f"{real_folder / name}: wait for it, or {advice}"
        ) from None
    try:
        if new:
            refuse_existing(path)
        yield
    finally:
        if lock.lock_counter == 1 and not is_soft:
            # While it is held, so that whoever has it open sees that it is gone.
            file.unlink(missing_ok=True)
        lock.release()


@cache
def _has_locks(folder: Path) -> bool:
    """Whether files of a folder can be locked; a warning where they cannot."""
    with tempfile.TemporaryFile(dir=folder, prefix=".lock-") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            if _WARNED not in os.environ:
                os.environ[_WARNED] = "1"
                warn(
                    f"the file system of {folder} has no locks: what is "
                    "written is kept from others by files NAME.soft-lock, which a "
                    "killed process leaves"
                )
            return False
    return True


@contextmanager
def temporary_path(path: Path | str, what: str = "") -> Iterator[Path]:
    """Yield a path beside `path` for a file or directory that is needed while `path` is
    made; it is removed when the block ends.

    `path` is locked meanwhile, and its folder is made where it is missing.

    Args:
        path: what is made. Where the system fails while the block writes (the disk is
            full, a quota or a limit is reached), the error names it.
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
            # NumPy counts what it has written, and forgets the reason.
            error.strerror = (
                error.strerror or f"it could not be written whole ({error})"
            )
            named = str(error.filename or path)
            error.filename = named.replace(str(temporary), str(path))
            raise
        except Exception as error:
            # Libraries say in words, or in the exception before, what the system said.
            found = re.search(_SYSTEM_ERROR, f"{error} {error.__context__}")
            if found is None or int(found[2]) not in _DISK_ERRORS:
                raise
            number = int(found[2])
            raise OSError(number, os.strerror(number), str(path)) from error
        finally:
            remove(temporary)


@contextmanager
def atomic_path(
    path: Path | str, *, sync: bool = True, checksum: bool = False
) -> Iterator[Path]:
    """Yield a path beside `path` to write a file to; it is renamed to `path` when the
    block ends well, else removed.

    Args:
        path: the file; it gets the permissions that the umask leaves.
        sync: whether the content is on disk before the rename. Files that are only
            worked with can do without.
        checksum: whether the file stands alone, and gets `FILE.xxh3`. Others are in a
            record with checksums, or are texts and pictures that people may change.
    """
    path = Path(path)
    # A pipe or a device, such as /dev/null, would be replaced.
    if path.exists():
        require_file(path)
    with temporary_path(path) as partial:
        partial.touch()
        # Of a new file, whatever writes it: a library may make it private.
        mode = partial.stat().st_mode
        yield partial
        os.chmod(partial, mode)
        if sync:
            to_disk(partial)
        line = checksum_line(partial, path.name) if checksum else b""
        # An older file's would call the new one damaged.
        checksum_path(path).unlink(missing_ok=True)
        os.replace(partial, path)
        if checksum:
            with atomic_path(checksum_path(path)) as beside:
                beside.write_bytes(line)


@contextmanager
def atomic_directory(path: Path | str) -> Iterator[Path]:
    """Yield a directory beside `path` to fill; it takes the place of `path` when the
    block ends well, else is removed.

    Permissions are as in `atomic_path`. Between two renames there is no `path`: a
    writer that is killed there leaves `.NAME.old`, which the next writer puts back.

    Raises:
        InputError: there is a file, a pipe or a device at `path`.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(
            f"{path} is no directory, and one is to be written: give another name"
        )
    old = path.with_name(f".{path.name}.old")
    with temporary_path(path) as partial:
        if old.exists() and not path.exists():
            os.replace(old, path)
        partial.mkdir()
        yield partial
        mode = partial.stat().st_mode & 0o666
        for file in partial.iterdir():
            # A file with two names, or a link, is also another's.
            if file.is_file() and not file.is_symlink() and file.stat().st_nlink == 1:
                os.chmod(file, mode)
                to_disk(file)
        remove(old)
        if path.exists():
            os.replace(path, old)
        os.replace(partial, path)
        remove(old)


def to_disk(file: Path) -> None:
    """Have all of a file on the disk."""
    with open(file, "rb") as written:
        os.fsync(written.fileno())


def remove(path: Path) -> None:
    """Remove a file and its checksum, or a directory, where it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        checksum_path(path).unlink(missing_ok=True)
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
