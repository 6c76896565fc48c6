"""Alternating highway LSTM: the encoder of He et al. (2017).

Layers read forwards and backwards in turn, a learned gate mixes the output of each step
with a projection of the step's input, and the recurrent states have one dropout mask a
sentence and layer (Gal and Ghahramani 2016). Parameters and results are those of
`allennlp_light`'s `StackedAlternatingLstm`. That one projects the inputs step by step
and takes 3.6 times as long; here a layer projects all its inputs in one product.
"""

from collections.abc import Sequence

import torch
from allennlp_light.modules.augmented_lstm import AugmentedLSTMCell
from allennlp_light.nn.util import get_dropout_mask
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import PackedSequence


class AlternatingLstm(torch.nn.Module):
    """Highway LSTM layers of alternating direction, the first one forwards.

    Args:
        input_size: of a word.
        hidden_size: H.
        layers: their number.
        dropout: on the recurrent states, one mask for each sentence and layer.
    """

    def __init__(
        self, *, input_size: int, hidden_size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.cells = torch.nn.ModuleList(
            AugmentedLSTMCell(hidden_size if layer else input_size, hidden_size)
            for layer in range(layers)
        )
        self.dropout = dropout

    @property
    def first(self) -> torch.nn.Linear:
        """The linear layer that the caller applies to the inputs: inputs that are
        repeated are multiplied once.
        """
        cell = self.cells[0]
        assert isinstance(cell, AugmentedLSTMCell)
        return cell.input_linearity

    def forward(self, packed: PackedSequence) -> PackedSequence:
        """The output of `first` for all N words, [N, 6H], packed → [N, H]."""
        projected = packed.data
        states = projected
        # How many sentences have a word at each place: their words lie together.
        sizes = packed.batch_sizes.tolist()
        for layer, cell in enumerate(self.cells):
            assert isinstance(cell, AugmentedLSTMCell)
            if layer:
                projected = cell.input_linearity(states)
            mask = None
            if self.training and self.dropout:
                batch = projected.new_empty(sizes[0], cell.lstm_dim)
                mask = get_dropout_mask(self.dropout, batch)  # [B, H]
            steps = projected.split(sizes)
            if layer % 2 == 0:
                states = torch.cat(_read(steps, cell.state_linearity, mask))
            else:
                backwards = _read(steps[::-1], cell.state_linearity, mask)
                states = torch.cat(backwards[::-1])
        return packed._replace(data=states)


def _read(
    steps: Sequence[Tensor], recurrent: torch.nn.Linear, mask: Tensor | None
) -> list[Tensor]:
    """The states after each step, [n, H] for the n words of a step.

    Args:
        steps: [n, 6H], in the order of reading: the inputs' part of the
            pre-activations of input gate, forget gate, cell candidate, output gate and
            highway gate, and what the highway gate passes in place of the output.
        recurrent: the states' part of the five pre-activations.
        mask: [B, H], on the previous state.
    """
    size = recurrent.in_features
    # Before the first step there is no row yet.
    state = steps[0].new_zeros(0, size)
    cell = state
    states = []
    for step in steps:
        # Read forwards, sentences end: their rows are cut off. Read backwards, shorter
        # sentences begin: their rows are zeros.
        rows = (0, 0, 0, len(step) - len(state))
        state = pad(state, rows)
        cell = pad(cell, rows)
        if mask is not None:
            state = state * mask[: len(step)]
        inputs, passed = step.split([5 * size, size], dim=1)
        gates = inputs + recurrent(state)  # [n, 5H]
        enter, keep, candidate, leave, highway = gates.chunk(5, dim=1)
        cell = enter.sigmoid() * candidate.tanh() + keep.sigmoid() * cell
        output = leave.sigmoid() * cell.tanh()
        state = torch.lerp(passed, output, highway.sigmoid())
        states.append(state)
    return states
