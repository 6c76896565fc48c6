"""Recurrence of one layer: equal to AllenNLP's LSTM without layer norm, and differentiated correctly."""

from functools import partial

import pytest
import torch
from allennlp_light.modules.lstm_cell_with_projection import LstmCellWithProjection
from elmoc.encoders.bidirectional import reverse_padded
from elmoc.encoders.fused_recurrence import fused_recurrence
from elmoc.encoders.lstm import LstmSizes, ProjectedLstmLayer
from elmoc.encoders.recurrence import LSTMState, Recurrence, RecurrenceOptions, RecurrenceWeights, plain_recurrence
from tests.elmoc.kernels.reference import ReferenceKernels
from torch import Tensor
from torch.utils.checkpoint import checkpoint

BATCH, TIME, PROJECTION, CELL = 4, 6, 3, 7
FULL, PADDED = [TIME] * BATCH, [6, 4, 4, 1]  # AllenNLP's cell wants the longest first


def layer_pair(
    go_forward: bool, cell_clip: float, projection_clip: float
) -> tuple[ProjectedLstmLayer, torch.nn.Module]:
    """Our layer and AllenNLP's with the same weights, large enough for the gates to saturate now and then."""
    torch.manual_seed(0)
    sizes = LstmSizes(
        projection_size=PROJECTION,
        cell_size=CELL,
        cell_clip=cell_clip,
        projection_clip=projection_clip,
        layer_norm=False,
    )
    ours = ProjectedLstmLayer(sizes, recurrence=plain_recurrence)
    theirs = LstmCellWithProjection(
        PROJECTION,
        PROJECTION,
        CELL,
        go_forward=go_forward,
        memory_cell_clip_value=cell_clip,
        state_projection_clip_value=projection_clip,
    )
    with torch.no_grad():
        for parameter, other in pairs_of_parameters(ours, theirs):
            parameter.copy_(1.5 * torch.randn_like(parameter))
            other.copy_(parameter)
    return ours, theirs


def pairs_of_parameters(ours: ProjectedLstmLayer, theirs: torch.nn.Module) -> list[tuple[Tensor, Tensor]]:
    pairs = [
        (ours.input_weight, theirs.input_linearity.weight),
        (ours.hidden_weight, theirs.state_linearity.weight),
        (ours.bias, theirs.state_linearity.bias),
        (ours.projection_weight, theirs.state_projection.weight),
    ]
    assert len(pairs) == len(list(ours.parameters())) == len(list(theirs.parameters()))
    return pairs


@pytest.mark.parametrize("go_forward", [True, False])
@pytest.mark.parametrize("lengths", [FULL, PADDED])
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.8, 0.5)], ids=["no clips", "clips"])
@pytest.mark.parametrize("carried", [False, True], ids=["zero state", "initial state"])
def test_outputs_states_and_gradients_are_those_of_allennlp(
    go_forward: bool, lengths: list[int], clips: tuple[float, float], carried: bool
) -> None:
    ours, theirs = layer_pair(go_forward, *clips)
    torch.manual_seed(1)
    values = {"inputs": torch.randn(BATCH, TIME, PROJECTION)}
    if carried:
        values |= {"hidden": torch.randn(BATCH, PROJECTION), "cell": torch.randn(BATCH, CELL)}
    mine = {name: value.clone().requires_grad_() for name, value in values.items()}
    other = {name: value.clone().requires_grad_() for name, value in values.items()}

    numbers = torch.tensor(lengths)
    inputs = mine["inputs"] if go_forward else reverse_padded(mine["inputs"], numbers)
    initial = LSTMState(mine["hidden"], mine["cell"]) if carried else None
    outputs, final = ours(inputs, initial, lengths=numbers if lengths != FULL else None)
    outputs = outputs if go_forward else reverse_padded(outputs, numbers)
    expected, (hidden, cell) = theirs(
        other["inputs"], lengths, (other["hidden"][None], other["cell"][None]) if carried else None
    )

    torch.testing.assert_close(outputs, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(final.hidden, hidden[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(final.cell, cell[0], atol=1e-5, rtol=1e-5)
    assert (outputs[numbers[:, None] <= torch.arange(TIME)] == 0).all(), "nothing comes out past a length"
    if clips[0]:
        assert (final.cell.abs() == clips[0]).any(), "the cell clip bites"
        assert (outputs.abs() == clips[1]).any(), "the projection clip bites"

    weights = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(2))
    ((outputs * weights).sum() + sum_of(final)).backward()
    ((expected * weights).sum() + sum_of(LSTMState(hidden[0], cell[0]))).backward()
    for name in values:
        torch.testing.assert_close(mine[name].grad, other[name].grad, atol=1e-5, rtol=1e-5)
    for parameter, counterpart in pairs_of_parameters(ours, theirs):
        assert parameter.grad.abs().max() > 1e-3
        torch.testing.assert_close(parameter.grad, counterpart.grad, atol=1e-5, rtol=1e-5)


def sum_of(state: LSTMState) -> Tensor:
    """Something of both parts of a state, with a gradient that differs between coordinates."""
    return sum((part * torch.linspace(-1, 1, part.shape[-1])).sum() for part in state)


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
