"""The biattentive classification network of McCann et al. (2017) for one sentence."""

from dataclasses import dataclass
from typing import Annotated

import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.modules.maxout import Maxout
from allennlp_light.nn.util import masked_mean, masked_softmax, weighted_sum
from msgspec import Meta
from torch import Tensor

from downstream.inputs.probe_inputs import valid_mask
from downstream.modules.lstm import BiLstm
from downstream.settings import Dropout, Size, TrainingSettings

# SST-5: from very negative to very positive.
CLASSES = 5


@dataclass(frozen=True, kw_only=True)
class Sst5Settings(TrainingSettings):
    """Hyper-parameters of the probe."""

    feedforward_size: Annotated[
        Size, Meta(description="units of the feed-forward layer before the LSTMs")
    ] = 300
    hidden_size: Annotated[
        Size, Meta(description="units of each LSTM, each direction")
    ] = 300
    first_output_size: Annotated[
        Size, Meta(description="units of the first maxout layer")
    ] = 1200
    second_output_size: Annotated[
        Size, Meta(description="units of the second maxout layer")
    ] = 600
    pool_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="linear functions whose maximum is a maxout unit",
        ),
    ] = 4
    embedding_dropout: Annotated[
        Dropout,
        Meta(description="dropout on the inputs"),
    ] = 0.5
    feedforward_dropout: Annotated[
        Dropout, Meta(description="dropout after the feed-forward layer")
    ] = 0.25
    integrator_dropout: Annotated[
        Dropout, Meta(description="dropout after the pooling")
    ] = 0.1
    first_output_dropout: Annotated[
        Dropout, Meta(description="dropout after the first maxout layer")
    ] = 0.2
    second_output_dropout: Annotated[
        Dropout, Meta(description="dropout after the second maxout layer")
    ] = 0.3


class BiattentiveClassifier(torch.nn.Module):
    """The network of McCann et al. (2017, section 5) for one sentence, in the form of
    ELMo's SST-5 experiments.

    Inputs → feed-forward → biLSTM (the encoder) → attention of the sentence over itself
    → biLSTM (the integrator) → pooling over the words (maximum, minimum, mean, and a
    mean with learned weights) → three maxout layers.
    """

    def __init__(self, *, input_size: int, settings: Sst5Settings) -> None:
        super().__init__()
        self.embedding_dropout = torch.nn.Dropout(settings.embedding_dropout)
        self.feedforward = FeedForward(
            input_dim=input_size,
            num_layers=1,
            hidden_dims=settings.feedforward_size,
            activations=[torch.nn.ReLU()],
            dropout=settings.feedforward_dropout,
        )
        self.encoder = BiLstm(
            input_size=settings.feedforward_size, hidden_size=settings.hidden_size
        )
        # `self_biattention` makes three vectors of each state.
        self.integrator = BiLstm(
            input_size=3 * self.encoder.output_size, hidden_size=settings.hidden_size
        )
        self.pooling_weight = torch.nn.Linear(self.integrator.output_size, 1)
        self.integrator_dropout = torch.nn.Dropout(settings.integrator_dropout)
        # The last layer gives the scores of the classes, which have no dropout.
        sizes = [settings.first_output_size, settings.second_output_size, CLASSES]
        dropouts = [settings.first_output_dropout, settings.second_output_dropout, 0.0]
        # `pool` puts four vectors side by side.
        self.output = Maxout(
            input_dim=4 * self.integrator.output_size,
            num_layers=len(sizes),
            output_dims=sizes,
            pool_sizes=settings.pool_size,
            dropout=dropouts,
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → scores of the
        classes before softmax, [B, C].
        """
        mask = valid_mask(lengths, x.device)  # [B, T]
        projected = self.feedforward(self.embedding_dropout(x))
        states = self.encoder(projected, lengths)  # [B, T, 2H]
        attended = self_biattention(states, mask)  # [B, T, 6H]
        integrated = self.integrator(attended, lengths)  # [B, T, 2H]
        return self.output(self.integrator_dropout(self.pool(integrated, mask)))

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """[B, T, 2H] and mask [B, T] → [B, 8H]: maximum, minimum, mean, and the mean
        with learned weights.
        """
        scores = self.pooling_weight(states).squeeze(2)  # [B, T]
        # Without `memory_efficient`, padding would get a share of the weight.
        weights = masked_softmax(scores, mask, memory_efficient=True)
        inside = mask.unsqueeze(2)
        # Padding must not be the largest or the smallest.
        largest = states.masked_fill(~inside, -torch.inf).amax(dim=1)
        smallest = states.masked_fill(~inside, torch.inf).amin(dim=1)
        mean = masked_mean(states, inside, dim=1)
        weighted_mean = weighted_sum(states, weights)
        return torch.cat([largest, smallest, mean, weighted_mean], dim=1)


def self_biattention(states: Tensor, mask: Tensor) -> Tensor:
    """Biattention of a sentence with itself: [B, T, 2H] and mask [B, T] → [B, T, 6H].

    Each word's state x becomes [x, x − a, x ∗ a]. Here a is the mean of all states,
    weighted by the softmax of their products with x (McCann et al. 2017, equations 4 to
    8, for two sentences that are the same).
    """
    # A word attends to itself, too, as in the published version.
    products = states.bmm(states.transpose(1, 2))  # [B, T, T]
    weights = masked_softmax(products, mask, memory_efficient=True)
    attended = weighted_sum(states, weights)  # [B, T, 2H]
    return torch.cat([states, states - attended, states * attended], dim=2)
