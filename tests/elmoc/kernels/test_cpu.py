"""CPU kernels: compiled once and kept, and what stands in the way is said."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elmoc.kernels.compiling import KernelBuildError, build, kept_library
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
    text = fresh_cache.parent / "text"
    text.write_text("no program")
    text.chmod(0o755)
    for compiler in ("false", "c++ --no-such-option --nor-this-one", str(text), "", "'unclosed"):
        with pytest.raises(KernelBuildError):
            load(compiler, SOURCE)
    assert not list(fresh_cache.glob("*.so"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(text))
    with pytest.raises(KernelBuildError):
        load("c++", SOURCE)


def test_a_cache_that_others_may_write_to_is_not_used(fresh_cache: Path) -> None:
    fresh_cache.mkdir()
    fresh_cache.chmod(0o777)
    with pytest.raises(KernelBuildError):
        load("c++", SOURCE)


def test_a_library_that_is_damaged_is_built_anew(fresh_cache: Path) -> None:
    fresh_cache.mkdir()
    content = bytes(range(256)) * 10
    library = fresh_cache / f"kernels-{hashlib.sha256(content).hexdigest()[:16]}.so"
    library.write_bytes(content)
    assert kept_library(fresh_cache, "kernels") == library
    assert kept_library(fresh_cache, "other") is None
    library.write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
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
