"""Sets of instructions of x86-64 that kernels are written for: which does this
processor have?
"""

import contextlib
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from elmoc.errors import InputError, shortened


class InstructionSet(NamedTuple):
    """What a processor has to have, as Linux names it, and the compiler's flags."""

    needs: frozenset[str]
    flags: list[str]


_AVX2 = frozenset(["avx2", "fma", "f16c", "bmi1", "bmi2", "abm", "movbe"])
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_BF16 = _AVX512 | {"avx512_bf16"}
_AVX512_FLAGS = ["-march=x86-64-v4", "-mprefer-vector-width=512"]
_BF16_FLAGS = [*_AVX512_FLAGS, "-mavx512bf16"]
_TILE_FLAGS = [*_BF16_FLAGS, "-mamx-tile", "-mamx-bf16"]
# Highest first.
INSTRUCTION_SETS = {
    "amx": InstructionSet(_BF16 | {"amx_tile", "amx_bf16"}, _TILE_FLAGS),
    "avx512_bf16": InstructionSet(_BF16, _BF16_FLAGS),
    "avx512": InstructionSet(_AVX512, _AVX512_FLAGS),
    "avx2": InstructionSet(_AVX2, ["-march=x86-64-v3"]),
}


def instruction_set() -> str | None:
    """The highest of `INSTRUCTION_SETS` that this processor has, and
    `ELMOC_INSTRUCTIONS` allows where it is set; None where there is none.

    Raises:
        InputError: the variable names no set.
    """
    names = list(INSTRUCTION_SETS)
    highest = os.environ.get("ELMOC_INSTRUCTIONS") or names[0]
    if highest not in names:
        raise InputError(
            f"ELMOC_INSTRUCTIONS is {shortened(highest)!r}: use {', '.join(names)}"
        )
    for name in names[names.index(highest) :]:
        if INSTRUCTION_SETS[name].needs <= _processor_flags():
            return name
    return None


@lru_cache
def _processor_flags() -> frozenset[str]:
    """What this processor has, as Linux names it; nothing under other systems."""
    with contextlib.suppress(OSError):
        about = Path("/proc/cpuinfo").read_text()
        if flags := re.search(r"^flags\s*:(.*)", about, re.MULTILINE):
            return frozenset(flags[1].split())
    return frozenset()
