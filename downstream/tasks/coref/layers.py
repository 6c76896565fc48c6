"""Settings of the coreference probe, and the layers that it alone has."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from downstream.modules.tagging import BiLstm
from downstream.settings import MOST_UNITS, TrainingSettings, dropout_setting, size_setting
from elmoc.settings import setting


@dataclass(frozen=True, kw_only=True)
class CorefSettings(TrainingSettings):
    """Hyper-parameters of the coreference probe."""

    hidden_size: int = size_setting(200, "units of the LSTM, each direction")
    layers: int = size_setting(3, "layers of the LSTM", most=100)
    head_size: int = setting(
        0,
        help="project the inputs to this size for the head attention (0: only to unit length)",
        least=0,
        most=MOST_UNITS,
    )
    span_width: int = size_setting(30, "most words of a span", most=10_000)
    span_ratio: float = setting(0.4, help="spans kept, a word of the document", least=0, most=10_000)
    antecedents: int = size_setting(50, "antecedents of a span that are scored in full")
    depth: int = size_setting(2, "how often antecedents are scored: representations are refined in between", most=100)
    feed_forward_size: int = size_setting(150, "units of each layer of the scorers")
    feed_forward_layers: int = size_setting(2, "hidden layers of the scorers", most=100)
    feature_size: int = size_setting(20, "size of the embeddings of width, distance, speaker and genre")
    training_sentences: int = size_setting(50, "train longer documents on random windows of this number of sentences")
    lexical_dropout: float = dropout_setting(0.5, "dropout on the inputs")
    lstm_dropout: float = dropout_setting(0.4, "dropout on what each layer of the LSTM gives")
    dropout: float = dropout_setting(0.2, "dropout in the scorers")


class HighwayBiLstm(torch.nn.Module):
    """Bidirectional LSTM layers, each but the first with a highway around it.

    With y the output of a layer after dropout and x its input, the layer's result is g·y + (1 − g)·x for the gate
    g = σ(W y + b). The highways are Lee et al.'s (2018), the cells inside are PyTorch's: theirs have one gate for
    input and forgetting, dropout on the recurrent state, learned initial states and block-orthonormal first
    weights.
    """

    def __init__(self, *, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.output_size = 2 * hidden_size
        self.layers = torch.nn.ModuleList(
            BiLstm(input_size=input_size if layer == 0 else self.output_size, hidden_size=hidden_size)
            for layer in range(layers)
        )
        self.gates = torch.nn.ModuleList(torch.nn.Linear(self.output_size, self.output_size) for _ in range(layers - 1))
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → [B, T, 2H]."""
        x = self.dropout(self.layers[0](x, lengths))
        for layer, gate in zip(self.layers[1:], self.gates, strict=True):
            y = self.dropout(layer(x, lengths))
            x = torch.lerp(x, y, gate(y).sigmoid())
        return x


class PartwiseFeedForward(torch.nn.Module):
    """A feed-forward net with one output over a concatenation that is never made.

    The first layer is linear: its output is the sum of the products of its columns with the parts. A part that many
    concatenations share is multiplied once: `project` each part, add, and `finish`.

    sizes     of the parts, in the order of the concatenation
    settings  `feed_forward_layers` hidden layers of `feed_forward_size` relu units, each followed by dropout
    """

    def __init__(self, *, sizes: Sequence[int], settings: CorefSettings) -> None:
        super().__init__()
        hidden_size, dropout = settings.feed_forward_size, settings.dropout
        self._sizes = list(sizes)
        self.first = torch.nn.Linear(sum(sizes), hidden_size)
        rest: list[torch.nn.Module] = [torch.nn.ReLU(), torch.nn.Dropout(dropout)]
        for _ in range(settings.feed_forward_layers - 1):
            rest += [torch.nn.Linear(hidden_size, hidden_size), torch.nn.ReLU(), torch.nn.Dropout(dropout)]
        self.rest = torch.nn.Sequential(*rest, torch.nn.Linear(hidden_size, 1))

    def project(self, part: int, x: Tensor) -> Tensor:
        """[..., size of the part] → [..., H]; the bias of the layer is added to part 0."""
        weight = self.first.weight.split(self._sizes, dim=1)[part]
        return torch.nn.functional.linear(x, weight, self.first.bias if part == 0 else None)

    def finish(self, x: Tensor) -> Tensor:
        """The sum of the projected parts [..., H] → the output [...]."""
        return self.rest(x).squeeze(-1)
