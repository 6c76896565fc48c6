"""Loading: the compiled library of a C++ file for the instructions that this processor
has.
"""

import contextlib
import ctypes
import os
import re
from functools import lru_cache
from pathlib import Path

from elmoc.errors import InputError, shortened, warn
from elmoc.kernels.compiling import INSTRUCTION_SETS, SOURCES, library_path


class NoKernelsError(Exception):
    """A library is not there, or cannot be loaded; says why."""


def usable_sets(highest: str | None = None) -> list[str]:
    """The names of `INSTRUCTION_SETS` that this processor has, highest first.

    Args:
        highest: the highest that is asked for, by default that of
            `ELMOC_INSTRUCTIONS`, or any.

    Raises:
        InputError: the variable names no set.
    """
    names = list(INSTRUCTION_SETS)
    highest = highest or os.environ.get("ELMOC_INSTRUCTIONS") or names[0]
    if highest not in names:
        raise InputError(
            f"ELMOC_INSTRUCTIONS is {shortened(highest)!r}: use {', '.join(names)}"
        )
    allowed = names[names.index(highest) :]
    return [name for name in allowed if INSTRUCTION_SETS[name].keys() <= _processor()]


@lru_cache
def _processor() -> frozenset[str]:
    """The instructions that this processor has, as Linux names them; none elsewhere."""
    with contextlib.suppress(OSError):
        about = Path("/proc/cpuinfo").read_text()
        if flags := re.search(r"^flags\s*:(.*)", about, re.MULTILINE):
            return frozenset(flags[1].split())
    return frozenset()


def compiled_sets(name: str, highest: str | None = None) -> list[str]:
    """The usable sets that a C++ file is compiled for, highest first.

    Args:
        name: of the file, in `SOURCES`.
        highest: see `usable_sets`.

    Raises:
        InputError: see `usable_sets`.
    """
    source = SOURCES[name]
    return [
        each for each in usable_sets(highest) if library_path(source, each).exists()
    ]


def load_library(name: str, highest: str | None = None) -> ctypes.CDLL:
    """The library of a C++ file for the highest of `compiled_sets`, whose arguments
    and errors these are, too.

    Raises:
        NoKernelsError: it is not compiled, or cannot be loaded.
    """
    problem = f"{name}.cpp is not compiled"
    if compiled := compiled_sets(name, highest):
        library = library_path(SOURCES[name], compiled[0])
        try:
            return ctypes.CDLL(str(library))
        except OSError as error:
            problem = f"{library} cannot be loaded ({error})"
    _warn(problem)
    raise NoKernelsError(problem)


@lru_cache
def _warn(problem: str) -> None:
    """Say once what is missing, and what helps."""
    warn(
        f"{problem}: what takes its place is several times slower. With a "
        "C++ compiler (on Debian and Ubuntu: the package g++), "
        "`python -m elmoc.kernels.compiling` is the remedy"
    )
