"""Settings of the coreference probe, and the layers that it alone has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from allennlp_light.modules.feedforward import FeedForward
from msgspec import Meta
from torch import Tensor

from downstream.modules.tagging import BiLstm
from downstream.settings import (
    MOST_UNITS,
    Dropout,
    Size,
    TrainingSettings,
)


@dataclass(frozen=True, kw_only=True)
class CorefSettings(TrainingSettings):
    """Hyper-parameters of the coreference probe."""

    hidden_size: Annotated[
        Size, Meta(description="units of the LSTM, each direction")
    ] = 200
    layers: Annotated[int, Meta(ge=1, le=100, description="layers of the LSTM")] = 3
    head_size: Annotated[
        int,
        Meta(
            ge=0,
            le=MOST_UNITS,
            description="project the inputs to this size for the head attention (0: "
            "only to unit length)",
        ),
    ] = 0
    span_width: Annotated[
        int, Meta(ge=1, le=10_000, description="most words of a span")
    ] = 30
    span_ratio: Annotated[
        float, Meta(ge=0, le=10_000, description="spans kept, a word of the document")
    ] = 0.4
    antecedents: Annotated[
        Size, Meta(description="antecedents of a span that are scored in full")
    ] = 50
    depth: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="how often antecedents are scored: representations are "
            "refined in between",
        ),
    ] = 2
    feed_forward_size: Annotated[
        Size, Meta(description="units of each layer of the scorers")
    ] = 150
    feed_forward_layers: Annotated[
        int, Meta(ge=1, le=100, description="hidden layers of the scorers")
    ] = 2
    feature_size: Annotated[
        Size,
        Meta(
            description="size of the embeddings of width, distance, speaker and genre"
        ),
    ] = 20
    training_sentences: Annotated[
        Size,
        Meta(
            description="train longer documents on random windows of this number of "
            "sentences"
        ),
    ] = 50
    lexical_dropout: Annotated[Dropout, Meta(description="dropout on the inputs")] = 0.5
    lstm_dropout: Annotated[
        Dropout, Meta(description="dropout on what each layer of the LSTM gives")
    ] = 0.4
    dropout: Annotated[Dropout, Meta(description="dropout in the scorers")] = 0.2


class HighwayBiLstm(torch.nn.Module):
    """Bidirectional LSTM layers, each but the first with a highway around it.

    With y the output of a layer after dropout and x its input, the layer's result is
    g·y + (1 − g)·x for the gate g = σ(W y + b). The highways are Lee et al.'s (2018),
    the cells inside are PyTorch's: theirs have one gate for input and forgetting,
    dropout on the recurrent state, learned initial states and block-orthonormal first
    weights.

    Args:
        input_size: D, of a word.
        hidden_size: H, of each direction.
        layers: their number.
        dropout: on the output of each layer.
    """

    def __init__(
        self, *, input_size: int, hidden_size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.output_size = 2 * hidden_size
        # All but the first layer read what a layer gives.
        sizes = [input_size] + [self.output_size] * (layers - 1)
        self.layers = torch.nn.ModuleList(
            BiLstm(input_size=size, hidden_size=hidden_size) for size in sizes
        )
        self.gates = torch.nn.ModuleList(
            torch.nn.Linear(size, size) for size in sizes[1:]
        )
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → [B, T, 2H]."""
        x = self.dropout(self.layers[0](x, lengths))
        # The first layer has no highway: its input is of another size.
        for layer, gate in zip(self.layers[1:], self.gates, strict=True):
            y = self.dropout(layer(x, lengths))
            x = torch.lerp(x, y, gate(y).sigmoid())
        return x


class PartwiseFeedForward(torch.nn.Module):
    """A feed-forward net with one output over a concatenation that is never made.

    The first layer is linear: its output is the sum of the products of its columns with
    the parts. A part that many concatenations share is multiplied once: `project` each
    part, add, and `finish`.

    Args:
        sizes: of the parts, in the order of the concatenation.
        settings: `feed_forward_layers` hidden layers of `feed_forward_size` units with
            ReLU, each followed by dropout.
    """

    def __init__(self, *, sizes: Sequence[int], settings: CorefSettings) -> None:
        super().__init__()
        hidden = settings.feed_forward_layers - 1
        self._sizes = list(sizes)
        self.first = torch.nn.Linear(sum(sizes), settings.feed_forward_size)
        # What follows the first layer, which is linear alone.
        self.rest = torch.nn.Sequential(
            torch.nn.ReLU(),
            torch.nn.Dropout(settings.dropout),
            FeedForward(
                settings.feed_forward_size,
                hidden + 1,
                [settings.feed_forward_size] * hidden + [1],
                [torch.nn.ReLU()] * hidden + [torch.nn.Identity()],
                [settings.dropout] * hidden + [0.0],
            ),
        )

    def project(self, part: int, x: Tensor) -> Tensor:
        """[..., size of the part] → [..., H]; part 0 has the bias of the layer."""
        # The columns of the weight that belong to the part.
        weight = self.first.weight.split(self._sizes, dim=1)[part]
        bias = self.first.bias if part == 0 else None
        return torch.nn.functional.linear(x, weight, bias)

    def finish(self, x: Tensor) -> Tensor:
        """The sum of the projected parts [..., H] → the output [...]."""
        return self.rest(x).squeeze(-1)
