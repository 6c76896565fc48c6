"""Locks: one writer at a time, and nothing left of writers that were killed."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elmoc.errors import InputError
from elmoc.files.writing import atomic_directory, atomic_path, locked, tidy_folder

HOLD = """
import sys
from elmoc.files.writing import atomic_path
with atomic_path(sys.argv[1]):
    print('locked', flush=True)
    input()
"""


def hold(path: Path) -> subprocess.Popen:
    """A process that is writing `path`."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"locked\n"
    return process


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with hold(path) as first:
        with pytest.raises(InputError, match="file"):
            locked(path).__enter__()
        tidy_folder(tmp_path)
        assert sorted(os.listdir(tmp_path)) == [".file.lock", ".file.partial"]
        first.send_signal(signal.SIGKILL)
    with locked(path), locked(path):  # which a thread may do twice
        pass
    tidy_folder(tmp_path)
    assert os.listdir(tmp_path) == []


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    with hold(tmp_path / "file") as first:
        first.send_signal(signal.SIGKILL)
    with atomic_path(tmp_path / "file") as partial:
        assert partial.read_bytes() == b""
    assert os.listdir(tmp_path) == ["file"]
    (tmp_path / ".directory.partial").mkdir()
    (tmp_path / ".directory.partial" / "half").touch()
    (tmp_path / ".directory.old").mkdir()  # killed between two renames
    (tmp_path / ".directory.old" / "whole").touch()
    with pytest.raises(ZeroDivisionError), atomic_directory(tmp_path / "directory"):
        1 / 0  # noqa: B018
    assert os.listdir(tmp_path / "directory") == ["whole"]
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


def test_another_thread_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write() -> None:
        with atomic_path(path):
            pass

    with ThreadPoolExecutor(1) as other:
        with locked(path):
            with pytest.raises(InputError):
                other.submit(write).result()
            write()
        other.submit(write).result()
    assert os.listdir(tmp_path) == ["file"]


def test_processes_that_take_a_lock_in_turns_are_never_two(tmp_path: Path) -> None:
    """The lock's file is removed and made again all the time."""
    code = """
import sys, time
from pathlib import Path
from elmoc.errors import InputError
from elmoc.files.writing import locked
done, end = 0, time.monotonic() + 20
while done < 100 and time.monotonic() < end:
    try:
        with locked(sys.argv[1]):
            count = int(Path(sys.argv[1]).read_text())
            Path(sys.argv[1]).write_text(str(count + 1))
        done += 1
    except InputError:
        pass
"""
    (tmp_path / "count").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "count"]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "300"
    assert os.listdir(tmp_path) == ["count"]
