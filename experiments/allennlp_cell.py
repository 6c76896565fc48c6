"""AllenNLP's cell with an encoder's weights: the published way to compute and to train
it, stepped through time.

The cell is `allennlp_light`'s. Layer normalisation and the clip of the projection, for
which it has no place, are put behind its projection.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn

from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.recurrence import LSTMState


def allennlp_cell(
    layer: nn.Module, sizes: LstmSizes, *, dropout: float = 0.0
) -> nn.Module:
    """AllenNLP's cell with the weights of a layer, which both then share."""
    # Other ways of computing are measured where this package is missing, too.
    from allennlp_light.modules.lstm_cell_with_projection import LstmCellWithProjection

    with torch.device("meta"):
        cell = LstmCellWithProjection(
            input_size=layer.input_weight.shape[1],
            hidden_size=sizes.projection_size,
            cell_size=sizes.cell_size,
            recurrent_dropout_probability=dropout,
            memory_cell_clip_value=sizes.cell_clip or None,
        )
    cell.input_linearity.weight = layer.input_weight
    cell.state_linearity.weight = layer.hidden_weight
    cell.state_linearity.bias = layer.bias
    cell.state_projection.weight = layer.projection_weight
    behind: list[nn.Module] = []
    if sizes.projection_clip:
        behind.append(nn.Hardtanh(-sizes.projection_clip, sizes.projection_clip))
    if layer.norm is not None:
        behind.append(layer.norm)
    cell.state_projection = nn.Sequential(cell.state_projection, *behind)
    return cell


class AllenNLPLayer(nn.Module):
    """The same function as a layer, with its weights; it draws the dropout mask."""

    def __init__(self, layer: nn.Module, sizes: LstmSizes) -> None:
        super().__init__()
        self.cell = allennlp_cell(layer, sizes, dropout=sizes.dropout)

    def forward(
        self,
        inputs: Tensor,
        state: LSTMState | None,
        *,
        dropout_mask: None,
    ) -> tuple[Tensor, LSTMState]:
        """inputs [B, T, P] → outputs [B, T, P] and the state after the last step."""
        initial = None
        if state is not None:
            initial = (state.hidden.unsqueeze(0), state.cell.unsqueeze(0))
        all_steps = [inputs.shape[1]] * len(inputs)
        outputs, (hidden, cell) = self.cell(inputs, all_steps, initial)
        return outputs, LSTMState(hidden.squeeze(0), cell.squeeze(0))


def allennlp_encoder(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """The same function as `encoder`, with weights of its own and AllenNLP's cells for
    its layers.
    """
    other = deepcopy(encoder)
    for name in other.directions:
        stack = other.direction(name).encoder
        layers = [AllenNLPLayer(layer, encoder.config.sizes) for layer in stack.layers]
        stack.layers = nn.ModuleList(layers)
    return other
