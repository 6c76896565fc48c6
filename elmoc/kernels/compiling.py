"""Compiled libraries: a C++ file of ours comes compiled in a wheel (`shipping.py`), or
is compiled on this machine, once for a processor, and kept.

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
from elmoc.kernels.instructions import INSTRUCTION_SETS, instruction_set

# Flags are tried in this order, behind those of the set: not every compiler and
# processor takes all of them. Without OpenMP one thread runs.
_OTHER_FLAGS: tuple[list[str], ...] = (
    ["-march=native", "-fopenmp"],
    ["-mcpu=native", "-fopenmp"],
    ["-march=native"],
    ["-mcpu=native"],
    [],
)
# No kernel throws, or reads errno or floating-point exceptions: without the last two
# loops of exponentials become vector code.
COMMON_FLAGS = [
    "-O3",
    "-std=c++17",
    "-fno-exceptions",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
]
_INFERENCE = Path(__file__).with_name("inference.cpp")
# A compilation takes ten seconds; a compiler that waits for something is given up.
_COMPILER_SECONDS = 600


class KernelBuildError(Exception):
    """A library cannot be compiled here; says why."""


def has_kernels() -> bool:
    """Whether kernels came compiled for this processor, or a C++ compiler is there."""
    if shipped_path(_INFERENCE, instruction_set()).exists():
        return True
    with contextlib.suppress(ValueError):
        return shutil.which(shlex.split(_compiler())[0]) is not None
    return False


def _compiler() -> str:
    """The command of the C++ compiler: `CXX`, or `c++`."""
    return os.environ.get("CXX", "").strip() or "c++"


def shipped_path(source: Path, instructions: str | None) -> Path:
    """Where a wheel has the library of a C++ file for a set of instructions. Its name
    changes with the source.
    """
    name = f"{source.stem}-{instructions}-{fingerprint(_parts(source))}.so"
    return source.parent / "compiled" / name


def load_library(source: Path, instructions: str | None = None) -> ctypes.CDLL:
    """The library of a C++ file, which came compiled, or is compiled for this processor
    unless that was done before.

    Args:
        source: the file; headers beside it belong to it.
        instructions: of `INSTRUCTION_SETS`; by default the highest of this processor.

    Raises:
        KernelBuildError: the library cannot be compiled, kept or loaded.
    """
    compiler = _compiler()
    try:
        instructions = instructions or instruction_set()
        library = shipped_path(source, instructions)
        if not library.exists():
            library = _compiled_here(source, shlex.split(compiler), instructions)
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
        if isinstance(error, FileNotFoundError) and not has_kernels():
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


def _compiled_here(source: Path, command: list[str], instructions: str | None) -> Path:
    """The library in the cache, compiled unless that was done before."""
    flags = _flags(instructions)
    name = f"{source.stem}-{_fingerprint(source, command, flags)}.so"
    library = cache_path() / name
    library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = library.parent.stat()
    # its libraries run as this user
    if folder.st_uid != os.getuid() or folder.st_mode & 0o022:
        raise InputError(
            f"others may write to {library.parent}: `chmod go-w` it, or set "
            "XDG_CACHE_HOME"
        )
    if _kept(library) is None:
        build(source, command, flags, library)
        # Whoever may write it could run as this user.
        library.chmod(0o700)
    return library


def _kept(library: Path) -> ctypes.CDLL | None:
    """The library as it was kept; None where it is not there yet, not whole, or of
    another system.
    """
    with contextlib.suppress(OSError, InputError):
        if check_beside(library):
            return ctypes.CDLL(str(library))
    return None


def _flags(instructions: str | None) -> list[list[str]]:
    """The flags that are tried, in this order."""
    if instructions is None:
        return [*_OTHER_FLAGS]
    return [[*INSTRUCTION_SETS[instructions].flags, "-fopenmp"], *_OTHER_FLAGS]


def _parts(source: Path) -> list[bytes]:
    """What the code of a library is made of."""
    files = [source, *sorted(source.parent.glob("*.h"))]
    flags = [COMMON_FLAGS, *(each.flags for each in INSTRUCTION_SETS.values())]
    return [*(path.read_bytes() for path in files), repr(flags).encode()]


def _fingerprint(source: Path, command: list[str], flags: list[list[str]]) -> str:
    """Names all that the compiled code depends on."""
    # the instruction sets of this processor, as macros: a library compiled for
    # another may not run on it
    macros = ["-march=native", "-dM", "-E", "-x", "c++", os.devnull]
    parts = [
        _run(command, ["--version"]).stdout,
        _run(command, macros).stdout,
        repr((command, flags)),
    ]
    return fingerprint([*_parts(source), *(part.encode() for part in parts)])


def build(
    source: Path, command: list[str], flags: list[list[str]], library: Path
) -> None:
    """Compile a C++ file by the first flags that the compiler takes, and keep the
    library with its checksum. Of several processes one does this, and the others wait.

    Raises:
        InputError: the compiler takes none of the flags.
    """
    with locked(library, seconds=_COMPILER_SECONDS):
        # Another process may have compiled it meanwhile.
        if _kept(library) is not None:
            return
        say(f"compiling {source.name}, once for this processor", file=sys.stderr)
        with atomic_path(library, checksum=True) as output:
            for each in flags:
                files = [str(source), "-o", str(output)]
                run = _run(command, COMMON_FLAGS + each + files)
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
