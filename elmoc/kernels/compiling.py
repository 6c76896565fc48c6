"""Compiled libraries: how a C++ file of ours is compiled on this machine, once for a
processor, and kept.

The library is kept in the user's cache directory, with its checksum: one that was cut,
by a full disk perhaps, would end every process that loads it.
"""

import contextlib
import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from elmoc.errors import InputError, say
from elmoc.files.checksums import check_beside, fingerprint
from elmoc.files.writing import atomic_path, locked

# Flags are tried in this order: not every compiler and processor takes all of them.
# Without OpenMP one thread runs.
FLAGS: tuple[list[str], ...] = (
    ["-march=native", "-mprefer-vector-width=512", "-fopenmp"],
    ["-march=native", "-fopenmp"],
    ["-mcpu=native", "-fopenmp"],
    ["-march=native"],
    ["-mcpu=native"],
    [],
)
# No kernel reads errno or floating-point exceptions: without them loops of exponentials
# become vector code.
COMMON_FLAGS = [
    "-O3",
    "-std=c++17",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
]
# A compilation takes ten seconds; a compiler that waits for something is given up.
_COMPILER_SECONDS = 600


class KernelBuildError(Exception):
    """A library cannot be compiled here; says why."""


def default_compiler() -> str:
    """The command of the C++ compiler: `CXX`, or `c++`."""
    return os.environ.get("CXX", "").strip() or "c++"


def has_compiler() -> bool:
    """Whether the command of the C++ compiler is there."""
    with contextlib.suppress(ValueError):
        return shutil.which(shlex.split(default_compiler())[0]) is not None
    return False


def load_library(source: Path, compiler: str) -> ctypes.CDLL:
    """The library of a C++ file, compiled for this processor unless that was done
    before.

    Args:
        source: the file; headers beside it belong to it.
        compiler: a command, with options.

    Raises:
        KernelBuildError: the library cannot be compiled, kept or loaded.
    """
    try:
        command = shlex.split(compiler)
        library = cache_path() / f"{source.stem}-{_fingerprint(source, command)}.so"
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = library.parent.stat()
        # its libraries run as this user
        if folder.st_uid != os.getuid() or folder.st_mode & 0o022:
            raise InputError(
                f"others may write to {library.parent}: `chmod go-w` it, or set "
                "XDG_CACHE_HOME"
            )
        if _kept(library) is None:
            build(source, command, library)
            # Whoever may write it could run as this user.
            library.chmod(0o700)
        return ctypes.CDLL(str(library))
    # a RuntimeError says that there is no home directory, a ValueError that the command
    # has an open quote
    except (
        InputError,
        OSError,
        RuntimeError,
        ValueError,
        subprocess.SubprocessError,
    ) as error:
        problem = f"kernels compiled by {compiler} cannot be kept or loaded ({error})"
        if isinstance(error, FileNotFoundError) and not has_compiler():
            problem = f"there is no C++ compiler {compiler}"
        _warn(problem)
        raise KernelBuildError(problem) from None


@lru_cache
def _warn(problem: str) -> None:
    """Say once what stands in the way, and what helps."""
    say(
        f"warning: {problem}: PyTorch computes instead, several times slower. A C++ "
        "compiler (on Debian and Ubuntu: the package g++) is the remedy",
        file=sys.stderr,
    )


def _kept(library: Path) -> ctypes.CDLL | None:
    """The library as it was kept; None where it is not there yet, not whole, or of
    another system.
    """
    with contextlib.suppress(OSError, InputError):
        if check_beside(library):
            return ctypes.CDLL(str(library))
    return None


def _fingerprint(source: Path, command: list[str]) -> str:
    """Names all that the compiled code depends on."""
    files = [source, *sorted(source.parent.glob("*.h"))]
    parts = [path.read_text() for path in files] + command
    parts += [
        _run(command, ["--version"]).stdout,
        # the instruction sets of this processor, as macros: a library compiled for
        # another may not run on it
        _run(command, ["-march=native", "-dM", "-E", "-x", "c++", os.devnull]).stdout,
        repr((FLAGS, COMMON_FLAGS)),
    ]
    return fingerprint(part.encode() for part in parts)


def build(source: Path, command: list[str], library: Path) -> None:
    """Compile a C++ file, and keep the library with its checksum. Of several processes
    one does this, and the others wait.

    Raises:
        InputError: the compiler takes none of the flags.
    """
    with locked(library, seconds=_COMPILER_SECONDS):
        # Another process may have compiled it meanwhile.
        if _kept(library) is not None:
            return
        say(f"compiling {source.name}, once for this processor", file=sys.stderr)
        with atomic_path(library, checksum=True) as output:
            for flags in FLAGS:
                files = [str(source), "-o", str(output)]
                run = _run(command, COMMON_FLAGS + flags + files)
                if run.returncode == 0:
                    return
            said = run.stderr.strip().splitlines() or [f"status {run.returncode}"]
            raise InputError(f"{command[0]} does not compile {source}: {said[-1]}")


def _run(command: list[str], arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command + arguments,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_COMPILER_SECONDS,
    )


def cache_path() -> Path:
    """`elmoc` in the user's cache directory (`XDG_CACHE_HOME`).

    Raises:
        RuntimeError: there is no home directory.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "elmoc")
