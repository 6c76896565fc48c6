"""AllenNLP's loop: the published way to train this encoder, a cell stepped through time under autograd.

The cell is `allennlp_light`'s, stepped as published; layer normalisation of the state, which ELMo-C adds, is put behind
its projection. Input projection, residual, head, loss and optimiser are this project's, as for every contestant.
"""

from copy import deepcopy

import torch
from allennlp_light.modules.lstm_cell_with_projection import LstmCellWithProjection
from torch import Tensor, nn

from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.encoders.lstm import LstmSizes, LstmStack, ProjectedLstmLayer
from elmoc.encoders.recurrence import LSTMState


def layer_norm_cell(sizes: LstmSizes) -> LstmCellWithProjection:
    """AllenNLP's cell with the state normalised between the clip and the dropout.

    Clip and norm are part of its projection, since the cell has no place between clip and dropout.
    """
    cell = LstmCellWithProjection(
        input_size=sizes.projection_size,
        hidden_size=sizes.projection_size,
        cell_size=sizes.cell_size,
        recurrent_dropout_probability=sizes.dropout,
        memory_cell_clip_value=sizes.cell_clip,
    )
    projection: list[nn.Module] = [nn.Linear(sizes.cell_size, sizes.projection_size, bias=False)]
    if sizes.projection_clip:
        projection.append(nn.Hardtanh(-sizes.projection_clip, sizes.projection_clip))
    if sizes.layer_norm:
        projection.append(nn.LayerNorm(sizes.projection_size))
    cell.state_projection = nn.Sequential(*projection)
    return cell


class AllenNLPLayer(nn.Module):
    """The same function as `layer`, with weights of its own; it draws the dropout mask itself."""

    def __init__(self, layer: nn.Module, sizes: LstmSizes) -> None:
        super().__init__()
        assert isinstance(layer, ProjectedLstmLayer)
        with torch.device("meta"):  # weights are copied, not drawn
            cell = layer_norm_cell(sizes).to(layer.bias.dtype)
        self.cell = cell.to_empty(device=layer.bias.device)
        norm = [] if layer.norm is None else [layer.norm.weight, layer.norm.bias]
        pairs = [
            (self.cell.input_linearity.weight, layer.input_weight),
            (self.cell.state_linearity.weight, layer.hidden_weight),
            (self.cell.state_linearity.bias, layer.bias),
            *zip(self.cell.state_projection.parameters(), [layer.projection_weight, *norm], strict=True),
        ]
        with torch.no_grad():
            for mine, theirs in pairs:
                mine.copy_(theirs)

    def forward(
        self, inputs: Tensor, state: LSTMState | None, *, lengths: None, dropout_mask: None
    ) -> tuple[Tensor, LSTMState]:
        """inputs [B, T, P] → outputs [B, T, P] and the state after the last step."""
        initial = None if state is None else (state.hidden.unsqueeze(0), state.cell.unsqueeze(0))
        outputs, (hidden, cell) = self.cell(inputs, [inputs.shape[1]] * len(inputs), initial)
        return outputs, LSTMState(hidden.squeeze(0), cell.squeeze(0))


def allennlp_encoder(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """The same function as `encoder`, with weights of its own and AllenNLP's cells for its layers."""
    other = deepcopy(encoder)
    for name in other.directions:
        stack, sizes = other.direction(name).encoder, encoder.config.sizes
        assert isinstance(stack, LstmStack)
        assert isinstance(sizes, LstmSizes)
        stack.dropout = 0.0  # no masks from here: the cells draw theirs
        stack.layers = nn.ModuleList(AllenNLPLayer(layer, sizes) for layer in stack.layers)
    return other
