"""Writing: whole or not at all, with the user's permissions, on disks that may be full."""

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elmoc.errors import InputError
from elmoc.files import writing
from elmoc.files.writing import (
    atomic_directory,
    atomic_path,
    human_bytes,
    refuse_existing,
    require_space,
    reserve_space,
)


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


@pytest.mark.parametrize("can_exchange", [True, False])
def test_atomic_directory_replaces_a_whole_directory_by_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(writing, "_exchanged", lambda first, second: False)
    path = tmp_path / "directory"
    for content in ("first", "second"):
        with atomic_directory(path) as partial:
            (partial / content).write_text(content)
        assert [file.name for file in path.iterdir()] == [content]
    with pytest.raises(ZeroDivisionError), atomic_directory(path) as partial:
        (partial / str(1 // 0)).touch()
    assert [file.name for file in path.iterdir()] == ["second"]
    assert [file.name for file in tmp_path.iterdir()] == ["directory"]


def test_a_directory_that_cannot_be_moved_in_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "directory"
    path.mkdir()
    (path / "old").touch()
    replace = os.replace

    def refuse(source: Path, target: Path) -> None:
        if source.name.endswith(".partial"):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        replace(source, target)

    monkeypatch.setattr(writing, "_exchanged", lambda first, second: False)
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError), atomic_directory(path) as partial:
        (partial / "new").touch()
    assert [file.name for file in path.iterdir()] == ["old"]
    assert [file.name for file in tmp_path.iterdir()] == ["directory"]


def test_what_is_written_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "file") as partial:
            partial.unlink()
            os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))  # as safetensors does
        with atomic_directory(tmp_path / "directory") as inside:
            os.close(os.open(inside / "file", os.O_CREAT | os.O_WRONLY, 0o600))
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "file", tmp_path / "directory" / "file")]
    assert modes == [0o640, 0o640]


def test_a_folder_that_is_kept_stays_as_it_is_where_folders_have_one_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on btrfs: it is not opened as a file, and stays one that can be entered."""

    def with_one_link(look: Callable[..., os.stat_result], path: Path, **options: Any) -> os.stat_result:
        found = list(look(path, **options))
        return os.stat_result([*found[:3], 1, *found[4:]])

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, partial(with_one_link, getattr(os, name)))
    with atomic_directory(tmp_path / "directory") as folder:
        (folder / "kept").mkdir()
        (folder / "kept" / "licence").write_text("free")
        (folder / "link").symlink_to("kept")
    assert (tmp_path / "directory" / "kept").stat().st_mode & 0o111
    assert (tmp_path / "directory" / "kept" / "licence").read_text() == "free"


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="directory is a directory, but a file is to be written"):
        atomic_path(tmp_path / "directory").__enter__()
    with pytest.raises(InputError, match="file is a file, but a directory is to be written"):
        atomic_directory(tmp_path / "file").__enter__()


def test_checks_before_writing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(InputError, match="exists already"):
        refuse_existing(tmp_path / "there")
    with pytest.raises(InputError, match=r"^\. exists already"):
        refuse_existing("")
    refuse_existing(tmp_path / "new")
    require_space(tmp_path / "a" / "b", 1)
    with pytest.raises(InputError, match=r"its disk \(/.*\) has .* free, .* too little"):
        require_space(tmp_path / "a" / "b", 10**18)
    assert [human_bytes(size) for size in (999, 1500, 2_400_000_000, 3e15)] == [
        "999 B",
        "1.5 KB",
        "2.4 GB",
        "3000.0 TB",
    ]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_one_sentence_whoever_reports_it(tmp_path: Path, error: Exception) -> None:
    message = r"out\.txt could not be written, its disk \(/.*\) is full"
    with pytest.raises(InputError, match=message), atomic_path(tmp_path / "out.txt"):
        raise error
    assert not list(tmp_path.iterdir())


def test_an_error_without_words_is_a_full_disk_where_nothing_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    with pytest.raises(InputError, match=r"its disk \(/.*\) is full"), atomic_path(tmp_path / "out.txt"):
        raise RuntimeError("file write failed")
    monkeypatch.setattr(writing.shutil, "disk_usage", lambda path: SimpleNamespace(free=10**9))
    with pytest.raises(RuntimeError, match="file write failed"), atomic_path(tmp_path / "out.txt"):
        raise RuntimeError("file write failed")


def test_space_is_reserved_before_it_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve_space(tmp_path / "file", 100_000)
    stat = (tmp_path / "file").stat()
    assert stat.st_size == 100_000 <= stat.st_blocks * 512

    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match=r"other needs about 100\.0 KB, but its disk \(/.*\) has .* free"):
        reserve_space(tmp_path / "other", 100_000)
    assert not (tmp_path / "other").exists()
