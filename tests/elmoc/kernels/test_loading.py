"""Loading of kernels: the highest set of instructions that the processor has, the user allows and is compiled."""

import sys
from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.kernels.compiling import INSTRUCTION_SETS, SOURCES, library_path
from elmoc.kernels.loading import NoKernelsError, compiled_sets, load_library, usable_sets

from elmoc.kernels import loading

# What Linux says of processors, without what no kernel needs.
AVX2 = "fma movbe f16c bmi1 avx2 bmi2 abm"
SKYLAKE = f"{AVX2} avx512f avx512dq avx512cd avx512bw avx512vl"
PROCESSORS = {
    f"{SKYLAKE} avx512_bf16 avx512_vnni amx_bf16 amx_tile amx_int8": "amx",
    f"{SKYLAKE} avx512_bf16 avx512_vnni": "avx512_bf16",
    f"{SKYLAKE} avx512_vnni": "avx512",
    AVX2: "avx2",
    "avx fma": "baseline",
}


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The highest set that the processor has."""
    monkeypatch.setattr(loading, "_processor", lambda: frozenset(request.param.split()))
    return PROCESSORS[request.param]


@pytest.mark.parametrize("highest", [*INSTRUCTION_SETS, ""])
@pytest.mark.parametrize("processor", PROCESSORS, indirect=True)
def test_sets_are_those_that_the_processor_has_and_that_may_be(
    monkeypatch: pytest.MonkeyPatch, processor: str, highest: str
) -> None:
    monkeypatch.setenv("ELMOC_INSTRUCTIONS", highest)
    order = list(INSTRUCTION_SETS)
    first = max(order.index(processor), order.index(highest or "amx"))
    assert usable_sets() == order[first:]


def test_a_name_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOC_INSTRUCTIONS", "sse")
    with pytest.raises(InputError, match="ELMOC_INSTRUCTIONS is 'sse': use amx, "):
        usable_sets()


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="this is no Linux")
def test_what_linux_says_of_this_processor_is_understood() -> None:
    assert ("sse2" in loading._processor()) == ("sse2" in Path("/proc/cpuinfo").read_text().split())


@pytest.mark.parametrize("processor", list(PROCESSORS)[2:3], indirect=True)
def test_a_lower_set_is_loaded_where_the_highest_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, processor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = {name: tmp_path / f"{name}.cpp" for name in SOURCES}
    for source in sources.values():
        source.write_text("")
    monkeypatch.setattr(loading, "SOURCES", sources)
    (tmp_path / "compiled").mkdir()
    compiled = library_path(SOURCES["cpu"], "baseline")
    library_path(sources["cpu"], "baseline").symlink_to(compiled)
    assert load_library("cpu")._name == str(library_path(sources["cpu"], "baseline"))
    assert compiled_sets("cpu") == ["baseline"]
    assert compiled_sets("inference") == []
    for source in sources.values():
        library_path(source, processor).symlink_to(compiled)
    assert load_library("cpu")._name == str(library_path(sources["cpu"], processor))
    assert compiled_sets("inference") == [processor]
    assert capsys.readouterr().err == ""


def test_what_is_missing_or_damaged_is_said_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source := tmp_path / "seven.cpp").write_text("")
    monkeypatch.setattr(loading, "SOURCES", {"seven": source})
    for _ in range(2):
        with pytest.raises(NoKernelsError, match=r"^seven\.cpp is not compiled$"):
            load_library("seven")
    assert capsys.readouterr().err.count("warning: seven.cpp is not compiled: what takes its place") == 1
    (tmp_path / "compiled").mkdir()
    library_path(source, "baseline").symlink_to(library_path(SOURCES["cpu"], "baseline"))
    monkeypatch.setattr(loading, "_processor", lambda: frozenset(AVX2.split()))
    damaged = library_path(source, "avx2")
    damaged.write_bytes(Path(sys.executable).read_bytes()[:200])
    with pytest.raises(NoKernelsError, match="cannot be loaded"):
        load_library("seven")
    assert str(damaged) in capsys.readouterr().err
