"""The fused recurrence: its outputs, final states and every gradient are the plain one's, whatever runs its kernels."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from elmoc.encoders.fused_recurrence import FusedRecurrence, Workspace
from elmoc.encoders.lstm import DirectionalEncoder, EncoderConfig
from elmoc.encoders.recurrence import LSTMState, Recurrence, RecurrenceWeights, plain, plain_recurrence
from elmoc.kernels.choose import choose_kernels
from elmoc.kernels.cpu import CompiledKernels, KernelBuildError, load
from elmoc.kernels.lstm_step import GatesBackward, GatesForward, LayerConstants, StepKernels
from elmoc.kernels.reference import ReferenceKernels

INPUT, PROJECTION, CELL = 20, 18, 37
"""Not multiples of what fits into a register."""


def triton_kernels(dtype: torch.dtype) -> StepKernels:
    """The GPU's kernels, run by Triton's interpreter on the CPU (which `tests/conftest.py` asks for)."""
    pytest.importorskip("triton", reason="Triton is not installed")
    if torch.cuda.is_available():
        pytest.skip("Triton compiles for the GPU that is here; tests/pretrain/test_gpu.py runs its kernels there")
    from elmoc.kernels.gpu import TritonKernels

    return TritonKernels()


KERNELS: dict[str, Callable[[torch.dtype], StepKernels]] = {
    "PyTorch": lambda dtype: ReferenceKernels(),
    "compiled": CompiledKernels,
    "Triton": triton_kernels,
}
CASES = {
    "paper": {},
    "clips that bite": {"cell_clip": 0.4, "projection_clip": 0.3},
    "no clips": {"cell_clip": 0.0, "projection_clip": 0.0},
    "no norm": {"norm": False},
    "no dropout": {"mask": False},
    "padded": {"lengths": [5, 0, 3, 1, 2, 5, 4]},
    "padded, no norm": {"lengths": [5, 0, 3, 1, 2, 5, 4], "norm": False, "cell_clip": 0.5},
    "one step": {"time": 1},
    "one stream": {"batch": 1},
    "one step of one stream": {"time": 1, "batch": 1},
}


def run(
    recurrence: Recurrence,
    *,
    dtype: torch.dtype = torch.float32,
    autocast: bool = False,
    batch: int = 7,
    time: int = 5,
    norm: bool = True,
    mask: bool = True,
    lengths: list[int] | None = None,
    cell_clip: float = 3.0,
    projection_clip: float = 3.0,
) -> dict[str, Tensor]:
    """Outputs, final state, and the gradients of all that goes in, by name."""
    torch.manual_seed(0)
    shapes = {
        "inputs": (batch, time, INPUT),
        "hidden": (batch, PROJECTION),
        "cell": (batch, CELL),
        "input weight": (4 * CELL, INPUT),
        "hidden weight": (4 * CELL, PROJECTION),
        "bias": (4 * CELL,),
        "projection weight": (PROJECTION, CELL),
    }
    shapes |= {"norm weight": (PROJECTION,), "norm bias": (PROJECTION,)} if norm else {}
    values = {name: (0.4 * torch.randn(shape, dtype=torch.float64)).to(dtype) for name, shape in shapes.items()}
    for value in values.values():
        value.requires_grad_()
    drawn = torch.bernoulli(torch.full((batch, PROJECTION), 0.8)).to(dtype) / 0.8
    weights = [value for name, value in values.items() if name not in ("inputs", "hidden", "cell")]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        outputs, final = recurrence(
            values["inputs"],
            LSTMState(values["hidden"], values["cell"]),
            RecurrenceWeights(*weights) if norm else RecurrenceWeights(*weights, None, None),
            cell_clip=cell_clip,
            projection_clip=projection_clip,
            norm_epsilon=1e-5,
            dropout_mask=drawn if mask else None,
            lengths=None if lengths is None else torch.tensor(lengths),
        )
    weighting = torch.randn(outputs.shape, dtype=torch.float64).to(dtype)
    loss = (outputs * weighting).sum() + (final.hidden * weighting[:, 0]).sum() + final.cell.float().sin().sum()
    loss.backward()
    gradients = {f"gradient of {name}": value.grad for name, value in values.items()}
    return {"outputs": outputs, "final hidden": final.hidden, "final cell": final.cell} | gradients


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_it_is_the_plain_one_in_float32(case: str, kernels: str) -> None:
    fused = run(FusedRecurrence(kernels=KERNELS[kernels](torch.float32)), **CASES[case])
    for name, expected in run(plain_recurrence, **CASES[case]).items():
        assert expected.abs().max() > 1e-4, name
        torch.testing.assert_close(fused[name], expected, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: name + text)


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_plain_one_in_float64(case: str) -> None:
    fused = run(FusedRecurrence(), dtype=torch.float64, **CASES[case])
    for name, expected in run(plain_recurrence, dtype=torch.float64, **CASES[case]).items():
        torch.testing.assert_close(fused[name], expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_in_bf16_it_is_no_further_from_float32_than_the_plain_one_under_autocast(case: str, kernels: str) -> None:
    exact = run(plain_recurrence, **CASES[case])
    plain = run(plain_recurrence, autocast=True, **CASES[case])
    fused = run(FusedRecurrence(kernels=KERNELS[kernels](torch.bfloat16)), autocast=True, **CASES[case])
    for name, expected in exact.items():
        assert fused[name].dtype == torch.float32, "weights, states and their gradients stay in float32"
        error, allowed = ((each[name].float() - expected).norm() / expected.norm() for each in (fused, plain))
        more = 3 if kernels == "Triton" else 1.5  # its interpreter cuts to bf16 instead of rounding
        assert error < max(more * allowed, 0.004), f"{name}: {error:.4f}, plain {allowed:.4f}"


@pytest.mark.parametrize(("kind", "threads"), [("compiled", 1), ("compiled", 2), ("Triton", 1)])
@pytest.mark.usefixtures("restore_threads")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # NumPy's, in Triton's interpreter
def test_fast_kernels_are_the_pytorch_ones(kind: str, dtype: torch.dtype, threads: int) -> None:
    """Wide enough for every path through a vector, with values up to where sigmoids saturate."""
    torch.set_num_threads(threads)
    results = {}
    for name in (kind, "PyTorch"):
        torch.manual_seed(0)
        kernels, batch, cell = KERNELS[name](dtype), 5, 1100
        layer = LayerConstants(
            bias=torch.randn(4 * cell),
            norm_weight=None,
            norm_bias=None,
            mask=None,
            lengths=torch.tensor([3, 1, 2, 9, 0]),
            cell_clip=1.5,
            projection_clip=0.0,
            norm_epsilon=0.0,
        )
        gates = (30 * torch.randn(batch, 4 * cell)).to(dtype)
        before, after = 2 * torch.randn(batch, cell), torch.empty(batch, cell)
        gated, grad_gated = torch.empty(batch, cell, dtype=dtype), torch.randn(batch, cell).to(dtype)
        grad_cell, grad_bias = torch.randn(batch, cell), torch.zeros(kernels.parts(batch)[1], 4 * cell)
        kernels.gates_forward(layer, 1, GatesForward(gates, before, gates, after, gated))  # in place
        forward = [gates.clone(), after, gated]
        again = torch.empty_like(gated)
        backward = GatesBackward(grad_gated, after, before, gates, again, grad_cell, grad_bias)
        kernels.gates_backward(layer, 1, backward)
        torch.testing.assert_close(again, gated, atol=1e-6 if dtype == torch.float32 else 2e-2, rtol=1e-2)
        results[name] = [*forward, gates, grad_cell, grad_bias.sum(0)]
    for ours, expected in zip(results[kind], results["PyTorch"], strict=True):
        tolerance = 1e-5 if dtype == torch.float32 else 4e-2
        torch.testing.assert_close(ours, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # NumPy's, in Triton's interpreter
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_value_that_is_not_finite_is_seen(kernels: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        recurrence = FusedRecurrence(kernels=KERNELS[kernels](dtype))
        for value in (float("nan"), float("inf")):
            weights = RecurrenceWeights(*(torch.ones(shape) for shape in ((8, 3), (8, 3), (8,), (3, 2), (3,), (3,))))
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
                outputs, _ = recurrence(
                    torch.full((1, 2, 3), value) * torch.tensor([1.0, -1.0, 1.0]),
                    LSTMState(torch.zeros(1, 3), torch.zeros(1, 2)),
                    weights,
                    cell_clip=3.0,
                    projection_clip=3.0,
                    norm_epsilon=1e-5,
                    dropout_mask=None,
                    lengths=None,
                )
            assert outputs.isnan().any()


def small_encoder() -> DirectionalEncoder:
    torch.manual_seed(0)
    config = EncoderConfig(word_vector_size=4, projection_size=6, cell_size=5, dropout=0.0)
    return DirectionalEncoder(config, recurrence=FusedRecurrence)


def test_windows_after_each_other_do_not_disturb_one_another() -> None:
    """Memory is used again only after the backward pass, so several windows may be open at once."""
    encoder, vectors = small_encoder(), torch.randn(3, 2, 4, 4)
    alone = []
    for window in vectors:
        encoder.zero_grad()
        encoder(window).top.square().sum().backward()
        alone.append(encoder.layers[0].hidden_weight.grad.clone())
    encoder.zero_grad()
    losses = [encoder(window).top.square().sum() for window in vectors]
    with torch.no_grad():
        encoder(vectors[0, :1])  # of another size, without a backward pass
    for loss in reversed(losses):
        loss.backward()
    torch.testing.assert_close(encoder.layers[0].hidden_weight.grad, sum(alone))


def test_a_second_backward_pass_and_a_changed_weight_are_errors() -> None:
    encoder = small_encoder()
    loss = encoder(torch.randn(2, 3, 4)).top.sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    loss = encoder(torch.randn(2, 3, 4)).top.sum()
    with torch.no_grad():
        encoder.layers[1].projection_weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_trained_by_a_fused_optimiser_it_ends_where_the_plain_one_does() -> None:
    """A fused optimiser does not change the version of a weight: nothing may be kept from one window to the next."""
    ends = []
    for recurrence in (plain, FusedRecurrence):
        torch.manual_seed(0)
        config = EncoderConfig(word_vector_size=4, projection_size=6, cell_size=5, dropout=0.0)
        encoder = DirectionalEncoder(config, recurrence=recurrence)
        optimiser = torch.optim.Adam(encoder.parameters(), lr=0.02, fused=True)
        vectors, wanted, state = torch.randn(2, 3, 4), torch.randn(2, 3, 6), None
        for _ in range(20):
            output = encoder(vectors, state)
            (output.top - wanted).square().mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            state = [LSTMState(*(part.detach() for part in layer)) for layer in output.state]
        ends.append(encoder.state_dict())
    for name, value in ends[0].items():
        torch.testing.assert_close(ends[1][name], value, atol=1e-3, rtol=1e-3)


def test_memory_is_taken_again() -> None:
    workspace = Workspace()
    first = workspace.take("gates", (4, 5), torch.float32, torch.device("cpu"))
    address = first.data_ptr()
    workspace.give(gates=first)
    second = workspace.take("gates", (3, 6), torch.bfloat16, torch.device("cpu"))
    assert second.data_ptr() == address
    assert second.shape == (3, 6)
    assert second.is_contiguous()
    assert workspace.take("gates", (4, 5), torch.float32, torch.device("cpu")).data_ptr() != address


def test_without_a_compiler_pytorch_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    choose_kernels.cache_clear()
    try:
        kernels = choose_kernels("cpu", torch.float32, torch.float32)
    finally:
        choose_kernels.cache_clear()
    assert isinstance(kernels, ReferenceKernels)
    assert kernels.description == "PyTorch, because there is no C++ compiler (no-such-compiler)"


def test_kernels_say_what_they_are() -> None:
    assert choose_kernels("cpu", torch.bfloat16, torch.float32).description.startswith("C++ compiled by ")
    assert choose_kernels("cpu", torch.float64, torch.float64).description == (
        "PyTorch, because weights are in torch.float64"
    )


@pytest.mark.parametrize(("weights", "autocast"), [(torch.bfloat16, False), (torch.float64, True)])
def test_compiled_kernels_are_for_weights_in_float32_alone(weights: torch.dtype, autocast: bool) -> None:
    results = run(FusedRecurrence(), dtype=weights, autocast=autocast)
    exact = run(plain_recurrence, dtype=torch.float64)
    for name, expected in exact.items():
        assert results[name].dtype == weights
        assert (results[name].double() - expected).norm() < 0.1 * expected.norm(), name


@pytest.fixture
def fresh_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache directory for compiled kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load.cache_clear()
    yield tmp_path / "elmoc"
    load.cache_clear()


def test_kernels_are_compiled_once_and_again_when_the_library_is_damaged(fresh_cache: Path) -> None:
    def load_elsewhere() -> int:
        """In another process, since one that has loaded a library does not look at the file again."""
        script = "from elmoc.kernels.cpu import load; load('c++ -O1')"
        subprocess.run([sys.executable, "-c", script], check=True)
        (library,) = fresh_cache.glob("*.so")
        return library.stat().st_mtime_ns

    compiled = load_elsewhere()
    assert load_elsewhere() == compiled
    (library,) = fresh_cache.iterdir()
    library.write_bytes(b"damaged")
    load("c++ -O1")
    assert library.stat().st_size > 1000
    assert list(fresh_cache.iterdir()) == [library], "nothing is left beside it"


def test_whatever_keeps_kernels_from_being_compiled_is_said(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KernelBuildError, match=r"false does not compile .*: status 1"):
        load("false")
    with pytest.raises(KernelBuildError, match=r"does not compile .*\.cpp: [^\n]+$"):
        load("c++ --no-such-option --nor-this-one")
    assert not list(fresh_cache.glob("*.so"))
    text = fresh_cache.parent / "text"
    text.write_text("no program")
    text.chmod(0o755)
    with pytest.raises(KernelBuildError, match=r"cannot be kept or loaded \(.*Exec format error"):
        load(str(text))
    monkeypatch.setenv("XDG_CACHE_HOME", str(text))
    with pytest.raises(KernelBuildError, match="cannot be kept or loaded"):
        load("c++")
