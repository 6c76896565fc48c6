"""Shipping: `make wheel` compiles the kernels for every set of instructions, so that
whoever installs the wheel needs no compiler.

The libraries need libc and libm alone. Their threads are those of PyTorch's OpenMP,
which is in the process before them.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from elmoc.kernels.compiling import COMMON_FLAGS, shipped_path
from elmoc.kernels.instructions import INSTRUCTION_SETS

_ROOM = Path(__file__).parents[1]
SOURCES = [
    _ROOM / "kernels/cpu.cpp",
    _ROOM / "kernels/inference.cpp",
    _ROOM / "word_vectors/fasttext.cpp",
]


def compile_for_all() -> None:
    """Put the libraries where `load_library` looks for them.

    Raises:
        subprocess.CalledProcessError: g++ does not compile them.
    """
    for source in SOURCES:
        for name, instructions in INSTRUCTION_SETS.items():
            library = shipped_path(source, name)
            library.parent.mkdir(exist_ok=True)
            _compile(source, instructions.flags, library)


def _compile(source: Path, flags: list[str], library: Path) -> None:
    with TemporaryDirectory() as folder:
        code = f"{folder}/code.o"
        compiling = [*COMMON_FLAGS, *flags, "-fopenmp", "-c", str(source), "-o", code]
        subprocess.run(["g++", *compiling], check=True)
        # Without -fopenmp, which would name a library of threads.
        linking = ["-shared", "-nodefaultlibs", code, "-lc", "-lm", "-o", str(library)]
        subprocess.run(["g++", *linking], check=True)


if __name__ == "__main__":
    compile_for_all()
