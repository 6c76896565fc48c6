"""Recurrence of one layer: it is differentiated correctly, and starts from the weights that it says."""

from functools import partial

import pytest
import torch
from elmoc.encoders.fused_recurrence import fused_recurrence
from elmoc.encoders.lstm import LstmSizes, ProjectedLstmLayer
from elmoc.encoders.recurrence import LSTMState, Recurrence, RecurrenceOptions, RecurrenceWeights, plain_recurrence
from tests.elmoc.kernels.reference import ReferenceKernels
from torch import Tensor
from torch.utils.checkpoint import checkpoint

PROJECTION, CELL = 3, 7


@pytest.mark.parametrize("lengths", [None, [3, 1]])
@pytest.mark.parametrize("norm", [True, False], ids=["layer norm", "no norm"])
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.4, 0.3)], ids=["no clips", "clips"])
@pytest.mark.parametrize(
    "recurrence", [plain_recurrence, partial(fused_recurrence, kernels=ReferenceKernels())], ids=["plain", "fused"]
)
def test_gradients_are_those_of_finite_differences(
    lengths: list[int] | None, norm: bool, clips: tuple[float, float], recurrence: Recurrence
) -> None:
    batch, time, width, projection, cell = 2, 3, 2, 3, 2
    torch.manual_seed(3)
    shapes = [(batch, time, width), (batch, projection), (batch, cell)]
    shapes += [(4 * cell, width), (4 * cell, projection), (4 * cell,), (projection, cell)]
    shapes += [(projection,), (projection,)] if norm else []
    arguments = [(1.2 * torch.randn(shape, dtype=torch.float64)).requires_grad_() for shape in shapes]
    mask = torch.tensor([[0.0, 1.25, 1.25], [1.25, 1.25, 0.0]], dtype=torch.float64)

    def run(inputs: Tensor, hidden: Tensor, cell: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        outputs, state = recurrence(
            inputs,
            LSTMState(hidden, cell),
            RecurrenceWeights(*weights) if norm else RecurrenceWeights(*weights, None, None),
            RecurrenceOptions(*clips, 1e-5, mask, None if lengths is None else torch.tensor(lengths)),
        )
        return outputs, *state

    def again(*values: Tensor) -> tuple[Tensor, ...]:
        """A fused window has one backward pass only, and gradcheck wants many: the forward pass is run again."""
        return checkpoint(run, *values, use_reentrant=False)

    assert torch.autograd.gradcheck(again, arguments)


def test_forget_bias_is_one_and_gates_are_orthogonal() -> None:
    sizes = LstmSizes(projection_size=PROJECTION, cell_size=CELL)
    layer = ProjectedLstmLayer(sizes, recurrence=plain_recurrence)
    assert layer.bias.reshape(4, CELL).tolist() == [[0.0] * CELL, [1.0] * CELL, [0.0] * CELL, [0.0] * CELL]
    for weight in (layer.input_weight, layer.hidden_weight):
        for gate in weight.chunk(4):  # [C, P], C > P: orthonormal columns
            torch.testing.assert_close(gate.T @ gate, torch.eye(PROJECTION), atol=1e-5, rtol=0)
