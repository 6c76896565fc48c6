"""Compiled libraries: how a C++ file of ours is compiled on this machine, once for a
processor, and kept.

The library is kept in the user's cache directory.
"""

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from elmoc.files.checksums import fingerprint

# Tried in this order: not every compiler and processor takes all of them. Without
# OpenMP one thread runs.
FLAGS = (
    ("-march=native", "-mprefer-vector-width=512", "-fopenmp"),
    ("-march=native", "-fopenmp"),
    ("-mcpu=native", "-fopenmp"),
    ("-march=native",),
    ("-mcpu=native",),
    (),
)
COMMON_FLAGS = (
    "-O3",
    "-std=c++17",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
)

_COMPILER_SECONDS = 600


class KernelBuildError(Exception):
    """A library cannot be compiled here; says why."""


def default_compiler() -> str:
    """The command of the C++ compiler: `CXX`, or `c++`."""
    return os.environ.get("CXX", "").strip() or "c++"


def load_library(source: Path, compiler: str) -> tuple[ctypes.CDLL, str]:
    """The library of a C++ file, compiled for this processor unless that was done
    before, and where the compiler is.
    """
    try:
        command = shlex.split(compiler)
        found = shutil.which(command[0]) if command else None
        if found is None:
            raise KernelBuildError(f"there is no C++ compiler ({compiler})")
        version = _run([*command, "--version"]).stdout
        sources = [
            path.read_text() for path in (source, *sorted(source.parent.glob("*.h")))
        ]  # with what it includes
        parts = (*sources, compiler, version, processor(), repr((FLAGS, COMMON_FLAGS)))
        name = fingerprint([part.encode() for part in parts])
        library = cache_path() / f"{source.stem}-{name}.so"
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = library.parent.stat()
        if (
            folder.st_uid != os.getuid() or folder.st_mode & 0o022
        ):  # its libraries run as this user
            raise KernelBuildError(
                f"others may write to {library.parent}: `chmod go-w` it, or set XDG_CACHE_HOME"
            )
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError:  # it is not there yet, or not whole
            build(source, command, library)
            loaded = ctypes.CDLL(str(library))
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        # there is no home directory (RuntimeError), the command has an open quote
        # (ValueError), it does not end
        raise KernelBuildError(
            f"kernels compiled by {compiler} cannot be kept or loaded ({error})"
        ) from None
    return loaded, found


def build(source: Path, command: list[str], library: Path) -> None:
    """Compile a C++ file; a `KernelBuildError` when the compiler cannot. Several
    processes can do this at once.
    """
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as scratch:
        output = Path(scratch) / library.name
        for flags in FLAGS:
            run = _run(
                [*command, *COMMON_FLAGS, *flags, str(source), "-o", str(output)]
            )
            if run.returncode == 0:
                output.chmod(0o700)
                output.replace(library)  # which gets its name when it is whole
                return
    said = run.stderr.strip().splitlines() or [f"status {run.returncode}"]
    raise KernelBuildError(f"{command[0]} does not compile {source}: {said[-1]}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_COMPILER_SECONDS,
    )


def processor() -> str:
    """The instruction sets of this processor: a library compiled for another may not
    run on it.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return platform.machine() + "".join(
        sorted({line for line in lines if line.startswith(("flags", "Features"))})
    )


def cache_path() -> Path:
    """`elmoc` in the user's cache directory (`XDG_CACHE_HOME`); raises `RuntimeError`
    where there is no home.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "elmoc"
