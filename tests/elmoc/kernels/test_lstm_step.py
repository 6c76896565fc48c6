"""Kernels of an LSTM step: the compiled ones give what the reference gives."""

import pytest
import torch
from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights
from elmoc.kernels.cpu import CompiledKernels
from elmoc.kernels.lstm_step import GatesBackward, GatesForward
from tests.elmoc.kernels.kinds import KERNELS


def weights_of(bias: torch.Tensor) -> RecurrenceWeights:
    """A layer of which the kernels of the gates read the bias alone."""
    nothing = torch.empty(0)
    return RecurrenceWeights(nothing, nothing, bias, nothing, norm_weight=None, norm_bias=None)


@pytest.mark.parametrize(("kind", "threads"), [("compiled", 1), ("compiled", 2), ("Triton", 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # NumPy's, in Triton's interpreter
def test_fast_kernels_are_the_pytorch_ones(kind: str, dtype: torch.dtype, threads: int) -> None:
    """Wide enough for every path through a vector, with values up to where sigmoids saturate."""
    torch.set_num_threads(threads)
    results = {}
    for name in (kind, "PyTorch"):
        torch.manual_seed(0)
        kernels, batch, cell = KERNELS[name](dtype), 5, 1100
        weights = weights_of(torch.randn(4 * cell))
        options = RecurrenceOptions(1.5, 0.0, 0.0, dropout_mask=None)
        gates = (30 * torch.randn(batch, 4 * cell)).to(dtype)
        before, after = 2 * torch.randn(batch, cell), torch.empty(batch, cell)
        gated, grad_gated = torch.empty(batch, cell, dtype=dtype), torch.randn(batch, cell).to(dtype)
        grad_cell, grad_bias = torch.randn(batch, cell), torch.zeros(kernels.parts(batch)[1], 4 * cell)
        kernels.run(weights, options, GatesForward(gates, before, gates, after, gated))  # in place
        forward = [gates.clone(), after, gated]
        again = torch.empty_like(gated)
        backward = GatesBackward(grad_gated, after, before, gates, again, grad_cell, grad_bias)
        kernels.run(weights, options, backward)
        torch.testing.assert_close(again, gated, atol=1e-6 if dtype == torch.float32 else 2e-2, rtol=1e-2)
        results[name] = [*forward, gates, grad_cell, grad_bias.sum(0)]
    tolerance = 1e-5 if dtype == torch.float32 else 4e-2
    torch.testing.assert_close(results[kind], results["PyTorch"], atol=tolerance, rtol=tolerance)


def test_the_tanh_of_compiled_kernels_errs_by_less_than_its_comment_says() -> None:
    x = torch.logspace(-8, 1, 1 << 14)
    x = torch.cat((x, -x)).unsqueeze(0)
    size = x.shape[1]
    options = RecurrenceOptions(0.0, 0.0, 0.0, dropout_mask=None)
    zeros, gates, cell, gated = (torch.zeros(1, columns * size) for columns in (1, 4, 1, 1))
    tensors = GatesForward(torch.cat((zeros, zeros, x, zeros), dim=1), zeros, gates, cell, gated)
    CompiledKernels(torch.float32).run(weights_of(torch.zeros(4 * size)), options, tensors)
    error = (gates[:, 2 * size : 3 * size].double() - x.double().tanh()).abs()
    assert error.max() < 2e-7
    assert (error / x.abs())[x.abs() > 1e-2].max() < 1.5e-5
