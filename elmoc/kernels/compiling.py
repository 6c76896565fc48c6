"""Compiling: the C++ of the project becomes libraries, one for each set of
instructions that it is written for.

`setup.py` runs this file by itself when the package is installed or a wheel is made, so
it imports nothing of the project; `python -m elmoc.kernels.compiling` does the same
later. The libraries lie beside their sources and need libc and libm alone: their
threads are those of PyTorch's OpenMP, which is in the process before them.
"""

import os
import shlex
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

_AVX2 = {"avx2": "-mavx2", "fma": "-mfma", "bmi1": "-mbmi", "bmi2": "-mbmi2"}
_AVX512 = _AVX2 | {
    "avx512f": "-mavx512f",
    "avx512bw": "-mavx512bw",
    "avx512dq": "-mavx512dq",
    "avx512vl": "-mavx512vl",
}
_BF16 = _AVX512 | {"avx512_bf16": "-mavx512bf16"}
# Highest first: what a processor has to have, as Linux names it, and the compiler's
# flag for it. Under `baseline` run processors of any kind.
INSTRUCTION_SETS: dict[str, dict[str, str]] = {
    "amx": _BF16 | {"amx_tile": "-mamx-tile", "amx_bf16": "-mamx-bf16"},
    "avx512_bf16": _BF16,
    "avx512": _AVX512,
    "avx2": _AVX2,
    "baseline": {},
}
_ROOM = Path(__file__).parents[1]
SOURCES = {
    "cpu": _ROOM / "kernels/cpu.cpp",
    "inference": _ROOM / "kernels/inference.cpp",
    "fasttext": _ROOM / "word_vectors/fasttext.cpp",
}
# No kernel throws, or reads errno or floating-point exceptions: without the last two
# loops of exponentials become vector code.
_FLAGS = [
    "-O3",
    "-std=c++17",
    "-fPIC",
    "-fopenmp",
    "-fno-exceptions",
    "-fno-math-errno",
    "-fno-trapping-math",
]


def library_path(source: Path, instructions: str) -> Path:
    """Where the library of a C++ file for a set of instructions is. Its name changes
    with the file, the headers beside it, this file and the kind of machine.
    """
    files = [source, *sorted(source.parent.glob("*.h")), Path(__file__)]
    machine = os.uname().machine.encode()
    content = b"".join([machine, *(path.read_bytes() for path in files)])
    name = f"{source.stem}-{instructions}-{zlib.crc32(content):08x}.so"
    return source.parent / "compiled" / name


def compile_all(*, again: bool = False) -> list[str]:
    """Make the libraries that are not there yet, by the compiler `CXX` or `c++`, and
    remove those of older sources. Returns what could not be compiled, and why.

    Args:
        again: make also those that are there, which may be damaged.
    """
    wanted = {
        library_path(source, name): (source, name)
        for source, name in product(SOURCES.values(), INSTRUCTION_SETS)
    }
    for folder in {path.parent for path in wanted}:
        folder.mkdir(exist_ok=True)
        for old in set(folder.glob("*.so")) - set(wanted):
            old.unlink(missing_ok=True)
    missing = [path for path in wanted if again or not path.exists()]
    if missing:
        print("compiling kernels", file=sys.stderr)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        problems = threads.map(
            lambda path: compile_library(*wanted[path], path), missing
        )
    return [problem for problem in problems if problem]


def compile_library(source: Path, instructions: str, library: Path) -> str:
    """Compile a C++ file for a set of instructions. Returns what stands in the way."""
    flags = [*_FLAGS, *INSTRUCTION_SETS[instructions].values()]
    with TemporaryDirectory(dir=library.parent) as folder:
        code, linked = f"{folder}/code.o", f"{folder}/library.so"
        steps = [
            [*flags, "-c", str(source), "-o", code],
            # Without -fopenmp, which would name a library of threads.
            ["-shared", "-nodefaultlibs", code, "-lc", "-lm", "-o", linked],
        ]
        for step in steps:
            try:
                command = shlex.split(os.environ.get("CXX") or "c++")
                subprocess.run([*command, *step], check=True, capture_output=True)
            except (OSError, ValueError, subprocess.CalledProcessError) as error:
                said = getattr(error, "stderr", b"").decode(errors="replace")
                reason = (said.strip() or str(error)).splitlines()[-1]
                return f"{source.name} for {instructions}: {reason}"
        # Whole or not at all: another process may load it.
        os.replace(linked, library)
    return ""


if __name__ == "__main__":
    sys.exit("\n".join(compile_all(again=True)) or 0)
