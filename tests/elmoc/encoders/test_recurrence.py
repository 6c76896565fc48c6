"""Recurrence of one layer: it starts from the weights that it says."""

import torch
from elmoc.encoders.lstm import LstmSizes, ProjectedLstmLayer
from elmoc.encoders.recurrence import plain_recurrence

PROJECTION, CELL = 3, 7


def test_forget_bias_is_one_and_gates_are_orthogonal() -> None:
    sizes = LstmSizes(projection_size=PROJECTION, cell_size=CELL)
    layer = ProjectedLstmLayer(sizes, recurrence=plain_recurrence)
    assert layer.bias.reshape(4, CELL).tolist() == [[0.0] * CELL, [1.0] * CELL, [0.0] * CELL, [0.0] * CELL]
    for weight in (layer.input_weight, layer.hidden_weight):
        for gate in weight.chunk(4):  # [C, P], C > P: orthonormal columns
            torch.testing.assert_close(gate.T @ gate, torch.eye(PROJECTION), atol=1e-5, rtol=0)
