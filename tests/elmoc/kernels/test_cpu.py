"""CPU kernels: compiled once and kept, and what stands in the way is said."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elmoc.kernels.compiling import KernelBuildError, build, cache_directory, kept_library
from elmoc.kernels.cpu import SOURCE, load


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache directory for compiled kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load.cache_clear()
    yield tmp_path / "elmoc"
    load.cache_clear()


def test_kernels_are_compiled_once_and_again_when_the_library_is_damaged(fresh_cache: Path) -> None:
    def load_elsewhere() -> int:
        """In another process, since one that has loaded a library does not look at the file again."""
        script = "from elmoc.kernels.cpu import SOURCE, load; load('c++ -O1', SOURCE)"
        subprocess.run([sys.executable, "-c", script], check=True)
        (library,) = fresh_cache.glob("*.so")
        return library.stat().st_mtime_ns

    compiled = load_elsewhere()
    assert load_elsewhere() == compiled
    (library,) = fresh_cache.iterdir()
    library.write_bytes(b"damaged")
    load("c++ -O1", SOURCE)
    assert library.stat().st_size > 1000
    assert list(fresh_cache.iterdir()) == [library], "nothing is left beside it"


def test_whatever_keeps_kernels_from_being_compiled_is_said(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KernelBuildError, match="status 1"):
        load("false", SOURCE)
    with pytest.raises(KernelBuildError, match=r"\.cpp"):
        load("c++ --no-such-option --nor-this-one", SOURCE)
    assert not list(fresh_cache.glob("*.so"))
    text = fresh_cache.parent / "text"
    text.write_text("no program")
    text.chmod(0o755)
    with pytest.raises(KernelBuildError, match="Exec format"):
        load(str(text), SOURCE)
    for nothing in ("", " ", "'unclosed"):
        with pytest.raises(KernelBuildError):
            load(nothing, SOURCE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(text))
    with pytest.raises(KernelBuildError):
        load("c++", SOURCE)


def test_a_compiler_that_does_not_end_and_one_that_is_not_utf_8(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nprintf '\\377\\n' >&2\nread line\nexit 3\n")  # at once: it has no input
    compiler.chmod(0o755)
    with pytest.raises(KernelBuildError):
        load(str(compiler), SOURCE)
    compiler.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr("elmoc.kernels.compiling._COMPILER_SECONDS", 0.2)
    load.cache_clear()
    with pytest.raises(KernelBuildError):
        load(str(compiler), SOURCE)


def test_a_cache_that_others_can_write_to(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh_cache.mkdir(mode=0o777)
    fresh_cache.chmod(0o777)
    assert cache_directory() == fresh_cache
    assert fresh_cache.stat().st_mode & 0o777 == 0o755, "our own is closed to them"
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(KernelBuildError):
        cache_directory()


@pytest.mark.parametrize("kind", ["truncated", "one bit", "writable by others", "another's", "a link", "empty"])
def test_a_library_that_is_damaged_or_not_our_own_is_built_anew(fresh_cache: Path, tmp_path: Path, kind: str) -> None:
    def path_of(content: bytes) -> Path:
        return fresh_cache / f"kernels-{hashlib.sha256(content).hexdigest()[:16]}.so"

    fresh_cache.mkdir()
    content = bytes(range(256)) * 10
    library = path_of(content)
    library.write_bytes(content)
    library.chmod(0o700)
    assert kept_library(fresh_cache, "kernels") == library
    assert kept_library(fresh_cache, "other") is None
    if kind == "truncated":
        library.write_bytes(content[:-1])
    elif kind == "one bit":
        library.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    elif kind == "writable by others":
        library.chmod(0o720)
    elif kind == "another's":
        if os.geteuid():
            pytest.skip("only root can give a file away")
        os.chown(library, 12345, -1)
    elif kind == "a link":
        library.rename(tmp_path / "library.so")
        library.symlink_to(tmp_path / "library.so")
    else:
        library.write_bytes(b"")
    assert kept_library(fresh_cache, "kernels") is None
    assert list(fresh_cache.iterdir()) == []


def test_two_that_compile_at_once(fresh_cache: Path, tmp_path: Path) -> None:
    fresh_cache.mkdir()
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nsleep 0.2\necho library > "$2"\n')
    compiler.chmod(0o755)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: build(SOURCE, [str(compiler)], fresh_cache, "kernels"), range(2))
    assert first == second == kept_library(fresh_cache, "kernels")
    assert first.read_text() == "library\n"
    assert list(fresh_cache.iterdir()) == [first]
