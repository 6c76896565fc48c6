"""Compiled kernels: one library for each set of instructions, whole or not there, made of the source as it is."""

import ctypes
import os
import subprocess
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from elmoc.kernels.compiling import INSTRUCTION_SETS, SOURCES, compile_all, library_path

from elmoc.kernels import compiling


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small C++ file, the only one of the project."""
    path = tmp_path / "seven.cpp"
    path.write_text('extern "C" int seven() { return 7; }\n')
    monkeypatch.setattr(compiling, "SOURCES", {"seven": path})
    return path


def test_they_are_compiled_once_and_again_when_the_source_changes(source: Path) -> None:
    def made() -> dict[Path, int]:
        return {each: each.stat().st_mtime_ns for each in (source.parent / "compiled").iterdir()}

    assert compile_all() == []
    first = made()
    assert set(first) == {library_path(source, name) for name in INSTRUCTION_SETS}
    assert ctypes.CDLL(str(library_path(source, "baseline"))).seven() == 7
    assert compile_all() == []
    assert made() == first
    library_path(source, "avx2").write_bytes(b"cut")
    (source.parent / "compiled/of-another-process").mkdir()
    assert compile_all(again=True) == []
    assert set(first) < set(made())
    assert library_path(source, "avx2").stat().st_size > 3
    source.write_text(source.read_text().replace("7", "8"))
    assert compile_all() == []
    assert not set(first) & set(made()), "those of the older source are gone"
    assert ctypes.CDLL(str(library_path(source, "baseline"))).seven() == 8


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("no-such-compiler", "No such file"),
        ("false", "exit status 1"),
        ("'open", "No closing quotation"),
        ("c++ -Dseven=+", "error: expected"),  # which the compiler's last line does not say
        ("c++ -Dseven=__kmpc_fork_call", "use g++"),  # what clang calls, and PyTorch's threads do not have
    ],
)
def test_what_cannot_be_compiled_is_said_and_not_there(
    source: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, reason: str
) -> None:
    monkeypatch.setenv("CXX", compiler)
    problems = compile_all()
    assert len(problems) == len(INSTRUCTION_SETS)
    assert problems[0].startswith("seven.cpp for amx: ")
    assert all(reason in each for each in problems)
    assert not list((source.parent / "compiled").iterdir())


def test_a_folder_that_cannot_be_written_is_said(source: Path) -> None:
    (source.parent / "compiled").write_text("")
    problems = compile_all()
    assert len(problems) == len(INSTRUCTION_SETS)
    assert all(str(source.parent / "compiled") in each for each in problems)


def test_other_machines_have_the_baseline_alone(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    assert compile_all() == []
    assert len(list((source.parent / "compiled").iterdir())) == 1


@pytest.mark.parametrize(("source", "name"), list(product(SOURCES.values(), INSTRUCTION_SETS)))
def test_they_name_no_library_but_those_of_the_system(source: Path, name: str) -> None:
    library = library_path(source, name)
    said = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    names = {Path(line.split()[0]).name for line in said.splitlines()}
    # a library that needs nothing is "statically linked"
    assert names <= {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "statically"}
    ctypes.CDLL(str(library))  # threads are PyTorch's
