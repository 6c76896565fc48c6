"""AllenNLP's loop: the published way to train this encoder, a cell stepped through time under autograd.

The cell is `allennlp_light`'s, stepped as published; layer normalisation of the state, which ELMo-C adds, is put behind
its projection. Input projection, residual, head, loss and optimiser are this project's, as for every contestant.
"""

from copy import deepcopy

from torch import Tensor, nn

from elmoc.benchmark.allennlp_cell import allennlp_cell
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.encoders.lstm import LstmSizes, LstmStack, ProjectedLstmLayer
from elmoc.encoders.recurrence import LSTMState


class AllenNLPLayer(nn.Module):
    """The same function as `layer`, with its weights; it draws the dropout mask itself."""

    def __init__(self, layer: nn.Module, sizes: LstmSizes) -> None:
        super().__init__()
        assert isinstance(layer, ProjectedLstmLayer)
        self.cell = allennlp_cell(layer, sizes, dropout=sizes.dropout)

    def forward(
        self, inputs: Tensor, state: LSTMState | None, *, lengths: None, dropout_mask: None
    ) -> tuple[Tensor, LSTMState]:
        """inputs [B, T, P] → outputs [B, T, P] and the state after the last step."""
        initial = None if state is None else (state.hidden.unsqueeze(0), state.cell.unsqueeze(0))
        outputs, (hidden, cell) = self.cell(inputs, [inputs.shape[1]] * len(inputs), initial)
        return outputs, LSTMState(hidden.squeeze(0), cell.squeeze(0))


def allennlp_encoder(encoder: BidirectionalEncoder) -> BidirectionalEncoder:
    """The same function as `encoder`, with weights of its own and AllenNLP's cells for its layers.

    Raises `InputError` where the package is missing.
    """
    other = deepcopy(encoder)
    for name in other.directions:
        stack, sizes = other.direction(name).encoder, encoder.config.sizes
        assert isinstance(stack, LstmStack)
        assert isinstance(sizes, LstmSizes)
        stack.dropout = 0.0  # no masks from here: the cells draw theirs
        stack.layers = nn.ModuleList(AllenNLPLayer(layer, sizes) for layer in stack.layers)
    return other
