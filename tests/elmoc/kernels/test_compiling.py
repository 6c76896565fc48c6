"""Compiled kernels: compiled once and kept, made again where they are damaged, and what stands in the way is said."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from elmoc.files.checksums import check_beside, checksum_path
from elmoc.kernels.compiling import (
    KernelBuildError,
    build,
    load_library,
    shipped_path,
)
from elmoc.kernels.instructions import INSTRUCTION_SETS, instruction_set
from elmoc.kernels.shipping import SOURCES, _compile


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small C++ file."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source/seven.cpp").write_text('extern "C" int seven() { return 7; }\n')
    return tmp_path / "source/seven.cpp"


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache directory for compiled kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "elmoc"


def test_a_library_is_compiled_once(source: Path, fresh_cache: Path) -> None:
    def made() -> Path:
        assert load_library(source).seven() == 7
        library, checksum = sorted(fresh_cache.iterdir())  # nothing is left beside them
        assert checksum == checksum_path(library)
        return library

    compiled = made().stat().st_mtime_ns
    assert made().stat().st_mtime_ns == compiled


@pytest.mark.parametrize("suffix", ["", ".xxh3"])
@pytest.mark.parametrize(
    "damage", [lambda whole: whole[: len(whole) // 2], lambda whole: b"", lambda whole: whole[:-9] + b"x" + whole[-8:]]
)
def test_a_damaged_library_is_compiled_again(
    damage: Callable[[bytes], bytes],
    suffix: str,
    source: Path,
    fresh_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_library(source)
    other = fresh_cache.parent / "other/elmoc"  # of the first this process has it open
    shutil.copytree(fresh_cache, other)
    [library] = other.glob("*.so")
    damaged = Path(f"{library}{suffix}")
    content = damaged.read_bytes()
    damaged.unlink()
    damaged.write_bytes(damage(content))
    monkeypatch.setenv("XDG_CACHE_HOME", str(other.parent))
    assert load_library(source).seven() == 7
    assert check_beside(library)
    assert len(list(other.iterdir())) == 2


def test_whatever_keeps_kernels_from_being_compiled_is_said(
    source: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = fresh_cache.parent / "text"
    text.write_text("no program")
    text.chmod(0o755)
    for compiler in ("false", "c++ --no-such-option --nor-this-one", str(text), "'unclosed"):
        monkeypatch.setenv("CXX", compiler)
        with pytest.raises(KernelBuildError):
            load_library(source)
    monkeypatch.setenv("CXX", "c++")
    assert not list(fresh_cache.glob("*.so"))
    fresh_cache.chmod(0o777)  # others may write to it
    with pytest.raises(KernelBuildError):
        load_library(source)
    monkeypatch.setenv("XDG_CACHE_HOME", str(text))
    with pytest.raises(KernelBuildError):
        load_library(source)


def test_two_that_compile_at_once(source: Path, fresh_cache: Path, tmp_path: Path) -> None:
    fresh_cache.mkdir()
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nsleep 0.2\necho library > "$2"\n')
    compiler.chmod(0o755)
    library = fresh_cache / "kernels.so"
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: build(source, [str(compiler)], [[]], library), range(2)))
    assert library.read_text() == "library\n"
    assert sorted(fresh_cache.iterdir()) == [library, checksum_path(library)]
    assert check_beside(library)


def test_the_library_that_came_with_a_wheel_needs_no_compiler(
    source: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = shipped_path(source, instruction_set())
    shipped.parent.mkdir()
    _compile(source, [], shipped)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert load_library(source).seven() == 7
    assert not fresh_cache.exists()
    source.write_text(source.read_text().replace("7", "8"))  # it is of another source
    with pytest.raises(KernelBuildError):
        load_library(source)


def test_what_a_wheel_brings_names_no_library_but_those_of_the_system(tmp_path: Path) -> None:
    for source, (name, instructions) in product(SOURCES, INSTRUCTION_SETS.items()):
        library = tmp_path / f"{source.stem}-{name}.so"
        _compile(source, instructions.flags, library)
        said = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
        names = {Path(line.split()[0]).name for line in said.splitlines()}
        # a library that needs nothing is "statically linked"
        assert names <= {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "statically"}
        ctypes.CDLL(str(library))  # threads are PyTorch's
