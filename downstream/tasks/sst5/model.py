"""Model of SST-5: the biattentive classification network of McCann et al. (2017)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.modules.maxout import Maxout
from allennlp_light.nn.util import masked_mean, masked_softmax, weighted_sum
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import Sentence
from downstream.modules.bilstm import BiLstm
from downstream.probe.settings import TrainingSettings, dropout_setting, size_setting
from downstream.probe.task import Probe, require_numbers

CLASSES = 5


@dataclass(frozen=True)
class Phrase:
    """The words under a node of a tree and the node's label; `root` where they are the whole sentence."""

    sentence: Sentence
    label: int
    root: bool


@dataclass(frozen=True, kw_only=True)
class Sst5Settings(TrainingSettings):
    """Hyper-parameters of the probe."""

    feedforward_size: int = size_setting(300, "units of the feed-forward layer before the LSTMs")
    hidden_size: int = size_setting(300, "units of each LSTM, each direction")
    first_output_size: int = size_setting(1200, "units of the first maxout layer")
    second_output_size: int = size_setting(600, "units of the second maxout layer")
    pool_size: int = size_setting(4, "linear functions of which a maxout unit is the maximum", most=1_000)
    embedding_dropout: float = dropout_setting(0.5, "dropout on the inputs")
    feedforward_dropout: float = dropout_setting(0.25, "dropout after the feed-forward layer")
    integrator_dropout: float = dropout_setting(0.1, "dropout after the pooling")
    first_output_dropout: float = dropout_setting(0.2, "dropout after the first maxout layer")
    second_output_dropout: float = dropout_setting(0.3, "dropout after the second maxout layer")


class Sst5Probe(Probe[Phrase, list[float]]):
    """Puts a phrase into one of the five classes. A prediction is the probabilities of the classes."""

    def __init__(self, *, inputs: ProbeInputs, settings: Sst5Settings) -> None:
        super().__init__()
        self.inputs = inputs
        self.classifier = BiattentiveClassifier(input_size=inputs.size, settings=settings)

    def logits(self, examples: Sequence[Phrase]) -> Tensor:
        """float32 [B, 5]."""
        return self.classifier(*self.inputs([example.sentence for example in examples]))

    def loss(self, examples: Sequence[Phrase]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        labels = torch.tensor([example.label for example in examples], device=logits.device)  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[Phrase]) -> list[list[float]]:
        """The probabilities of the five classes, one list an example."""
        return require_numbers(self.logits(examples)).softmax(dim=1).tolist()


class BiattentiveClassifier(torch.nn.Module):
    """The network of McCann et al. (2017, section 5) for one sentence, in the form of ELMo's SST-5 experiments.

    Inputs → feed-forward → biLSTM (the encoder) → attention of the sentence over itself → biLSTM (the integrator) →
    pooling over the words (maximum, minimum, mean, and a mean with learned weights) → three maxout layers.
    """

    def __init__(self, *, input_size: int, settings: Sst5Settings) -> None:
        super().__init__()
        self.embedding_dropout = torch.nn.Dropout(settings.embedding_dropout)
        self.feedforward = FeedForward(
            input_size, 1, settings.feedforward_size, [torch.nn.ReLU()], settings.feedforward_dropout
        )
        self.encoder = BiLstm(input_size=settings.feedforward_size, hidden_size=settings.hidden_size)
        self.integrator = BiLstm(input_size=3 * self.encoder.output_size, hidden_size=settings.hidden_size)
        self.pooling_weight = torch.nn.Linear(self.integrator.output_size, 1)
        self.integrator_dropout = torch.nn.Dropout(settings.integrator_dropout)
        sizes = [settings.first_output_size, settings.second_output_size, CLASSES]
        dropouts = [settings.first_output_dropout, settings.second_output_dropout, 0.0]
        self.output = Maxout(4 * self.integrator.output_size, len(sizes), sizes, settings.pool_size, dropouts)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → scores of the classes before softmax, [B, C]."""
        mask = valid_mask(lengths, x.device)  # [B, T]
        states = self.encoder(self.feedforward(self.embedding_dropout(x)), lengths)  # [B, T, 2H]
        integrated = self.integrator(self_biattention(states, mask), lengths)  # [B, T, 2H]
        return self.output(self.integrator_dropout(self.pool(integrated, mask)))

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """[B, T, 2H] and mask [B, T] → [B, 8H]: maximum, minimum, mean, and the mean with learned weights."""
        weights = masked_softmax(self.pooling_weight(states).squeeze(2), mask, memory_efficient=True)  # [B, T]
        outside = ~mask.unsqueeze(2)
        return torch.cat(
            [
                states.masked_fill(outside, -torch.inf).amax(dim=1),
                states.masked_fill(outside, torch.inf).amin(dim=1),
                masked_mean(states, ~outside, dim=1),
                weighted_sum(states, weights),
            ],
            dim=1,
        )


def self_biattention(states: Tensor, mask: Tensor) -> Tensor:
    """Biattention of a sentence with itself: [B, T, 2H] and mask [B, T] → [B, T, 6H].

    Each word's state x, and with a the mean of all the states, weighted by the softmax of their products with x:
    [x, x − a, x ∗ a] (McCann et al. 2017, equations 4 to 8, the two sentences being one).
    """
    weights = masked_softmax(states.bmm(states.transpose(1, 2)), mask, memory_efficient=True)  # [B, T, T]
    attended = weighted_sum(states, weights)  # [B, T, 2H]
    return torch.cat([states, states - attended, states * attended], dim=2)
