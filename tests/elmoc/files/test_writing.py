"""Writing: whole or not at all, with the user's permissions."""

import os
from pathlib import Path

import pytest

from elmoc.errors import InputError
from elmoc.files.writing import (
    atomic_directory,
    atomic_path,
    human_bytes,
    refuse_existing,
    require_space,
    reserve_space,
    temporary_path,
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


def test_a_temporary_file_is_removed(tmp_path: Path) -> None:
    with temporary_path(tmp_path / "table", "text") as path:
        path.write_text("a")
        assert path.parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_checks_before_writing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    for name in (tmp_path / "there", ""):
        with pytest.raises(InputError, match="exists already"):
            refuse_existing(name)
    refuse_existing(tmp_path / "new")
    require_space(tmp_path / "a" / "b", 1)
    with pytest.raises(InputError, match="free"):
        require_space(tmp_path / "a" / "b", 10**18)
    sizes = [human_bytes(size) for size in (999, 1500, 2_400_000_000, 3e15)]
    assert sizes == ["999 B", "1.5 KB", "2.4 GB", "3000.0 TB"]


def test_space_is_reserved_before_it_is_mapped(tmp_path: Path) -> None:
    reserve_space(tmp_path / "file", 100_000)
    stat = (tmp_path / "file").stat()
    assert stat.st_size == 100_000 <= stat.st_blocks * 512
