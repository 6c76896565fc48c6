"""Sets of instructions: the highest that a processor has and the user allows is taken."""

from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.kernels.instructions import INSTRUCTION_SETS, _processor_flags, instruction_set

# What Linux says of processors, without what no kernel needs.
AVX2 = "fma movbe f16c bmi1 avx2 bmi2 abm"
SKYLAKE = f"{AVX2} avx512f avx512dq avx512cd avx512bw avx512vl"
PROCESSORS = {
    f"{SKYLAKE} avx512_bf16 amx_bf16 amx_tile amx_int8": "amx",
    f"{SKYLAKE} avx512_bf16 avx512_vnni": "avx512_bf16",
    f"{SKYLAKE} avx512_vnni": "avx512",
    AVX2: "avx2",
    "avx fma": None,
}


@pytest.mark.parametrize("highest", [*INSTRUCTION_SETS, ""])
@pytest.mark.parametrize("flags", PROCESSORS)
def test_the_highest_that_there_is_and_that_may_be(monkeypatch: pytest.MonkeyPatch, flags: str, highest: str) -> None:
    monkeypatch.setattr("elmoc.kernels.instructions._processor_flags", lambda: frozenset(flags.split()))
    monkeypatch.setenv("ELMOC_INSTRUCTIONS", highest)
    order = [*INSTRUCTION_SETS, None]
    assert instruction_set() == max(PROCESSORS[flags], highest or "amx", key=order.index)


def test_a_name_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOC_INSTRUCTIONS", "sse")
    with pytest.raises(InputError, match="ELMOC_INSTRUCTIONS is 'sse': use amx, "):
        instruction_set()


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="this is no Linux")
def test_linux_says_what_the_processor_has() -> None:
    _processor_flags.cache_clear()
    assert "fpu" in _processor_flags() or "fp" in _processor_flags() or not _processor_flags()
