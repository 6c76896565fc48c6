"""Locks: one writer at a time, and nothing left of those that were killed."""

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from elmoc.errors import InputError
from elmoc.files import locks
from elmoc.files.locks import locked, tidy
from elmoc.files.writing import atomic_directory, atomic_path

HOLD = (
    "import sys; from elmoc.files.locks import locked\nwith locked(sys.argv[1]): print('locked', flush=True); input()"
)


def hold(path: Path) -> subprocess.Popen:
    """A process that has locked `path`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"locked\n"
    return process


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    with hold(tmp_path / "file") as first:
        with pytest.raises(InputError, match=r"another process is writing .*file: wait for it, or stop it"):
            atomic_path(tmp_path / "file").__enter__()
        first.send_signal(signal.SIGKILL)
    with locked(tmp_path / "file"), locked(tmp_path / "file"):  # which a process may do twice
        assert os.listdir(tmp_path) == [".file.lock"]
    assert os.listdir(tmp_path) == []


def test_another_thread_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write() -> None:
        with atomic_path(path) as partial:
            partial.touch()

    with ThreadPoolExecutor(1) as other, locked(path):
        with pytest.raises(InputError, match=r"^another thread is writing .*file: wait for it$"):
            other.submit(write).result()
        other.submit(tidy, path).result()
        assert os.listdir(tmp_path) == [".file.lock"]
        write()
        path.unlink()
    with ThreadPoolExecutor(1) as other:
        other.submit(write).result()
    assert os.listdir(tmp_path) == ["file"]


def test_of_threads_that_write_one_directory_each_writes_a_whole_one_or_is_refused(tmp_path: Path) -> None:
    path, start = tmp_path / "directory", Barrier(3)

    def write(thread: int) -> bool:
        start.wait()
        try:
            with atomic_directory(path) as partial:
                for name in "abcdef":
                    (partial / name).write_text(str(thread))
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(3) as threads:
        assert any(threads.map(write, range(3)))
    assert os.listdir(tmp_path) == ["directory"]
    assert len({file.read_text() for file in path.iterdir()}) == 1
    assert len(os.listdir(path)) == 6


def test_a_lock_is_given_back_where_leftovers_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".file.12.partial").mkdir()

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(locks.shutil, "rmtree", refuse)
        with pytest.raises(PermissionError):
            locked(tmp_path / "file").__enter__()
    assert os.listdir(tmp_path) == [".file.12.partial"]
    with locked(tmp_path / "file"):
        assert os.listdir(tmp_path) == [".file.lock"]


def test_the_root_directory_is_nothing_to_write() -> None:
    with pytest.raises(InputError, match=r"^/ is the root directory, which cannot be replaced: give another path"):
        locked("/").__enter__()


def test_what_a_killed_writer_left_is_tidied_away_but_not_the_lock_of_one_that_goes_on(tmp_path: Path) -> None:
    tidy(tmp_path / "file")
    assert os.listdir(tmp_path) == []
    with hold(tmp_path / "file") as first:
        (tmp_path / f".file.{first.pid}.partial").touch()
        tidy(tmp_path / "file")
        assert sorted(os.listdir(tmp_path)) == [f".file.{first.pid}.partial", ".file.lock"]
        first.send_signal(signal.SIGKILL)
    tidy(tmp_path / "file")
    assert os.listdir(tmp_path) == []


def test_a_lock_that_its_owner_removes_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = locks.fcntl.flock
    calls = []

    def flock_after_removal(descriptor: int, operation: int) -> None:
        calls.append(operation)
        if len(calls) == 1:
            (tmp_path / ".file.lock").unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(locks.fcntl, "flock", flock_after_removal)
    with locked(tmp_path / "file"), pytest.raises(subprocess.CalledProcessError):
        subprocess.run([sys.executable, "-c", HOLD, tmp_path / "file"], input=b"\n", capture_output=True, check=True)
    assert len(calls) == 2


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".directory.12.partial").mkdir()
    (tmp_path / ".directory.12.partial" / "file").touch()
    (tmp_path / ".directory.12.old").mkdir()  # killed between two renames: the old one comes back
    (tmp_path / ".directory.12.old" / "whole").touch()
    (tmp_path / ".directory.mine").touch()
    (tmp_path / ".directory.12.text.partial").touch()
    for name in (".other.12.partial", ".directory.1.12.partial", ".directory.1.12.old"):  # of other writers
        (tmp_path / name).touch()
    with locked(tmp_path / "directory"):
        pass
    others = [".directory.1.12.old", ".directory.1.12.partial", ".directory.mine", ".other.12.partial"]
    assert sorted(os.listdir(tmp_path)) == [*others, "directory"]
    assert os.listdir(tmp_path / "directory") == ["whole"]


def test_a_lock_that_cannot_be_made_names_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *arguments: int) -> int:
        raise OSError(locks.errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="No space left") as raised:
        locked(tmp_path / "file").__enter__()
    assert raised.value.filename == str(tmp_path / "file")


def test_a_process_may_lock_a_file_by_another_path_to_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with locked(tmp_path / "folder" / "file"), locked(tmp_path / "link" / "file"):
        assert os.listdir(tmp_path / "folder") == [".file.lock"]
    assert os.listdir(tmp_path / "folder") == []


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", flock)
    (tmp_path / ".file.12.partial").touch()
    with locked(tmp_path / "file"):
        assert "has no locks" in capsys.readouterr().err
    with locked(tmp_path / "another"):
        assert not capsys.readouterr().err  # it is said once
    assert os.listdir(tmp_path) == [".file.12.partial"]  # which may be that of another writer
