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
# of processors that multiply bf16, all multiply int8, too
_BF16 = _AVX512 | {"avx512_bf16": "-mavx512bf16", "avx512_vnni": "-mavx512vnni"}
_TILES = {
    "amx_tile": "-mamx-tile",
    "amx_bf16": "-mamx-bf16",
    "amx_int8": "-mamx-int8",
}
# Highest first: what a processor has to have, as Linux names it, and the compiler's
# flag for it. Under `baseline` run processors of any kind.
INSTRUCTION_SETS: dict[str, dict[str, str]] = {
    "amx": _BF16 | _TILES,
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
    """Make the libraries that are not there yet, by the compiler `CXX` or `c++`.
    Returns what could not be compiled, and why.

    Args:
        again: make also those that are there, which may be damaged.
    """
    names = INSTRUCTION_SETS if os.uname().machine == "x86_64" else ["baseline"]
    wanted = product(SOURCES.values(), names)
    missing = [each for each in wanted if again or not library_path(*each).exists()]
    if missing:
        print("compiling kernels", file=sys.stderr)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        problems = threads.map(lambda each: compile_library(*each), missing)
    return [problem for problem in problems if problem]


def compile_library(source: Path, instructions: str) -> str:
    """Compile a C++ file for a set of instructions, and remove what an older one was
    compiled to. Returns what stands in the way.
    """
    library = library_path(source, instructions)
    compiler = os.environ.get("CXX") or "c++"
    flags = [*_FLAGS, *INSTRUCTION_SETS[instructions].values()]
    try:
        library.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=library.parent) as folder:
            code, linked = Path(folder, "code.o"), Path(folder, "library.so")
            _run(compiler, *flags, "-c", source, "-o", code)
            if b"__kmpc_" in code.read_bytes():
                raise ValueError("its threads are not GNU's, as PyTorch's are: use g++")
            # Without -fopenmp, which would name a library of threads.
            _run(
                compiler, "-shared", "-nodefaultlibs", code, "-lc", "-lm", "-o", linked
            )
            # Whole or not at all: another process may load it.
            os.replace(linked, library)
        others = library.parent.glob(f"{source.stem}-{instructions}-*.so")
        for old in set(others) - {library}:
            old.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        return f"{source.name} for {instructions}: {error}"
    return ""


def _run(compiler: str, *arguments: str | Path) -> None:
    """Run the compiler, with options of its own.

    Raises:
        OSError, ValueError: it cannot be run, or says what is wrong.
    """
    command = [*shlex.split(compiler), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if ended.returncode:
        said = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
        raise ValueError(next((line for line in said if "error" in line), said[-1]))


if __name__ == "__main__":
    sys.exit("\n".join(compile_all(again=True)) or 0)
