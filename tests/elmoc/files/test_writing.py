"""Writing: whole or not at all, by one writer at a time, with the user's permissions."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.errors import InputError, describe_error, human_bytes
from elmoc.files.checksums import check_beside
from elmoc.files.text import open_text
from elmoc.files.writing import atomic_directory, atomic_path, locked, refuse_existing
from safetensors.torch import save_file

from elmoc.files import writing


def test_atomic_path_leaves_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with atomic_path(path) as partial:
        partial.write_text("first")

    def interrupted() -> None:
        with atomic_path(path) as partial:
            partial.write_text("second")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "first"
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_a_pipe_is_not_replaced_and_only_the_new_file_has_a_checksum(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe or a device"), atomic_path(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()
    for checksum in (True, False):
        with atomic_path(tmp_path / "f", checksum=checksum) as partial:
            partial.write_text(str(checksum))
        assert check_beside(tmp_path / "f") == checksum


def test_atomic_directory_replaces_a_whole_directory_by_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    for content in ("first", "second"):
        with atomic_directory(path) as partial:
            (partial / content).write_text(content)
        assert [file.name for file in path.iterdir()] == [content]
    with pytest.raises(ZeroDivisionError), atomic_directory(path) as partial:
        (partial / str(1 // 0)).touch()
    assert [file.name for file in path.iterdir()] == ["second"]
    assert [file.name for file in tmp_path.iterdir()] == ["directory"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file"):
        atomic_directory(tmp_path / "file").__enter__()


def test_what_is_written_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "file") as partial:
            partial.unlink()
            os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))  # as safetensors does
        with atomic_directory(tmp_path / "directory") as inside:
            os.close(os.open(inside / "file", os.O_CREAT | os.O_WRONLY, 0o600))
            (inside / "kept").mkdir()
            (inside / "link").symlink_to("kept")
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("file", "directory/file", "directory/kept")]
    assert modes == [0o640, 0o640, 0o750]


def test_checks_before_writing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    for name in (tmp_path / "there", ""):
        with pytest.raises(InputError, match="exists already"):
            refuse_existing(name)
    refuse_existing(tmp_path / "new")
    sizes = [human_bytes(size) for size in (999, 1500, 2_400_000_000, 3e15)]
    assert sizes == ["999 B", "1.5 KB", "2.4 GB", "3000.0 TB"]


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
        assert sorted(os.listdir(tmp_path)) == [".file.lock", ".file.partial"]
        first.send_signal(signal.SIGKILL)
    with locked(path), locked(path):  # which a thread may do twice
        pass
    assert os.listdir(tmp_path) == [".file.partial"]


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


def test_processes_that_take_a_lock_in_turns_are_never_two(tmp_path: Path) -> None:
    """The lock's file is removed and made again all the time."""
    code = """
import sys
from pathlib import Path
from elmoc.errors import InputError
from elmoc.files.writing import locked
done = 0
while done < 50:
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
    assert (tmp_path / "count").read_text() == "150"
    assert os.listdir(tmp_path) == ["count"]


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Given a number of an error: every lock of the system fails with it."""
    monkeypatch.setenv(writing._WARNED, "")
    monkeypatch.delenv(writing._WARNED)

    def fail_with(number: int) -> None:
        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", fail)

    return fail_with


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_where_there_are_no_locks_files_stand_in_for_them(
    tmp_path: Path, no_locks: Callable[[int], None], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    no_locks(number)
    for path in (tmp_path / "a" / "file", tmp_path / "b" / "file"):
        with locked(path), atomic_path(path) as partial:
            assert (path.parent / ".file.soft-lock").exists()
            partial.touch()
        assert os.listdir(path.parent) == ["file"]
    assert capsys.readouterr().err.count("warning: ") == 1
    left = path.with_name(".file.soft-lock")
    with subprocess.Popen(["true"]) as ended:
        pass
    left.write_text(f"{ended.pid}\n{socket.gethostname()}\n")  # of a process that was killed on this machine
    with locked(path):
        pass
    left.write_text("77\nnode12\n")
    with pytest.raises(InputError, match=r"^process 77 on node12 is writing .*file: .*remove .*soft-lock if it has"):
        locked(path).__enter__()


def test_other_failures_of_locks_are_told(tmp_path: Path, no_locks: Callable[[int], None]) -> None:
    no_locks(errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        locked(tmp_path / "file").__enter__()


def write_text(path: Path) -> None:
    with open_text(path) as file:
        file.write("x" * 1_000_000)


FULL: dict[str, Callable[[Path], object]] = {
    "safetensors": lambda path: save_file({"a": torch.zeros(100_000)}, path),
    "torch": lambda path: torch.save({"a": torch.zeros(100_000)}, open(path, "wb")),  # noqa: SIM115
    "numpy": lambda path: np.save(open(path, "wb"), np.zeros(100_000)),  # noqa: SIM115
    "text": write_text,
}


@pytest.mark.parametrize("write", FULL.values(), ids=FULL)
def test_a_full_disk_names_the_file_and_the_old_one_stays(
    tmp_path: Path, files_of_at_most: Callable[[int], None], write: Callable[[Path], object]
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    files_of_at_most(100_000)
    with pytest.raises(OSError, match=r"File too large|written whole \(100000") as error:  # noqa: SIM117
        with atomic_path(path) as partial:
            write(partial)
    assert describe_error(error.value).startswith(f"{path}: ")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
