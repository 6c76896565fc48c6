"""CPU kernels: compiled once and kept, and what stands in the way is said."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmoc.kernels.cpu import KernelBuildError, load


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
        script = "from elmoc.kernels.cpu import load; load('c++ -O1')"
        subprocess.run([sys.executable, "-c", script], check=True)
        (library,) = fresh_cache.glob("*.so")
        return library.stat().st_mtime_ns

    compiled = load_elsewhere()
    assert load_elsewhere() == compiled
    (library,) = fresh_cache.iterdir()
    library.write_bytes(b"damaged")
    load("c++ -O1")
    assert library.stat().st_size > 1000
    assert list(fresh_cache.iterdir()) == [library], "nothing is left beside it"


def test_whatever_keeps_kernels_from_being_compiled_is_said(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KernelBuildError, match=r"false does not compile .*: status 1"):
        load("false")
    with pytest.raises(KernelBuildError, match=r"does not compile .*\.cpp: [^\n]+$"):
        load("c++ --no-such-option --nor-this-one")
    assert not list(fresh_cache.glob("*.so"))
    text = fresh_cache.parent / "text"
    text.write_text("no program")
    text.chmod(0o755)
    with pytest.raises(KernelBuildError, match=r"cannot be kept or loaded \(.*Exec format error"):
        load(str(text))
    monkeypatch.setenv("XDG_CACHE_HOME", str(text))
    with pytest.raises(KernelBuildError, match="cannot be kept or loaded"):
        load("c++")
