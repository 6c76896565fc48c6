"""Model of natural language inference: ESIM, the enhanced sequential inference model of Chen et al. (2017).

"Enhanced LSTM for Natural Language Inference", section 3, sequential model only, with the dropout of the version that
was published with ELMo.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.modules.input_variational_dropout import InputVariationalDropout
from allennlp_light.modules.matrix_attention import DotProductMatrixAttention
from allennlp_light.nn.util import masked_max, masked_mean, masked_softmax, weighted_sum
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.modules.bilstm import BiLstm
from downstream.probe.settings import MOST_UNITS, TrainingSettings, dropout_setting, size_setting
from downstream.probe.task import Probe, require_numbers
from downstream.readers.sentence_pairs import SentencePair
from elmoc.settings import setting


@dataclass(frozen=True, kw_only=True)
class SnliSettings(TrainingSettings):
    """Hyper-parameters of the probe."""

    projection_size: int = setting(
        0,
        help="units of a linear layer between the inputs and the first LSTM (0: there is none)",
        least=0,
        most=MOST_UNITS,
    )
    hidden_size: int = size_setting(300, "units of each layer; of the LSTMs, each direction")
    dropout: float = dropout_setting(
        0.5,
        "dropout on the inputs (before the projection), on the second LSTM's inputs and around the last hidden layer",
    )
    shortcut: bool = setting(
        False, help="a shortcut around the first LSTM: attention and enhancement see its inputs beside its outputs"
    )


class SnliProbe(Probe[SentencePair, dict[str, float]]):
    """ESIM on the inputs. A prediction is the probability of each label."""

    def __init__(self, *, inputs: ProbeInputs, settings: SnliSettings, labels: Sequence[str]) -> None:
        super().__init__()
        self.inputs = inputs
        self.labels = list(labels)
        self._ids = {label: row for row, label in enumerate(labels)}
        self.model = Esim(input_size=inputs.size, labels=len(labels), settings=settings)

    def logits(self, examples: Sequence[SentencePair]) -> Tensor:
        """float32 [B, labels]."""
        premises = self.inputs([example.premise for example in examples])
        hypotheses = self.inputs([example.hypothesis for example in examples])
        return self.model(*premises, *hypotheses)

    def loss(self, examples: Sequence[SentencePair]) -> Tensor:
        """Cross-entropy, the mean over the batch."""
        logits = self.logits(examples)
        labels = torch.tensor([self._ids[example.label] for example in examples], device=logits.device)  # [B]
        return torch.nn.functional.cross_entropy(logits, labels)

    def predict(self, examples: Sequence[SentencePair]) -> list[dict[str, float]]:
        """The probability of each label."""
        probabilities = require_numbers(self.logits(examples)).softmax(dim=1)
        return [dict(zip(self.labels, row, strict=True)) for row in probabilities.tolist()]


class Esim(torch.nn.Module):
    """Puts pairs of sentences into one of `labels` classes; the words' inputs have the size `input_size` (D).

    Dropout on the inputs, before the projection, and on those of the second LSTM has one mask a sentence. With the
    setting `shortcut` a word is represented by the first LSTM's outputs and inputs side by side (as in the
    shortcut-stacked encoders of Nie and Bansal 2017), so that E, the size of a word's representation, is 2H plus the
    size of the projection; without it, E is 2H.
    """

    def __init__(self, *, input_size: int, labels: int, settings: SnliSettings) -> None:
        super().__init__()
        projection_size, hidden_size, dropout = settings.projection_size, settings.hidden_size, settings.dropout
        projected_size = projection_size or input_size
        self.shortcut = settings.shortcut
        self.input_dropout = InputVariationalDropout(dropout)
        self.projection = torch.nn.Linear(input_size, projection_size) if projection_size else torch.nn.Identity()
        self.encoder = BiLstm(input_size=projected_size, hidden_size=hidden_size)
        width = self.encoder.output_size + (projected_size if self.shortcut else 0)  # E
        self.attention = DotProductMatrixAttention()
        self.enhancement = FeedForward(4 * width, 1, hidden_size, torch.nn.ReLU())
        self.inference = BiLstm(input_size=hidden_size, hidden_size=hidden_size)
        self.output = torch.nn.Sequential(
            torch.nn.Dropout(dropout),
            FeedForward(4 * self.inference.output_size, 1, hidden_size, torch.nn.ReLU(), dropout),
            torch.nn.Linear(hidden_size, labels),
        )
        self.apply(initialise)

    def forward(
        self, premises: Tensor, premise_lengths: Tensor, hypotheses: Tensor, hypothesis_lengths: Tensor
    ) -> Tensor:
        """[B, P, D] and [B, Q, D] with their lengths [B] (on the CPU, each at least 1) → float32 [B, labels]."""
        a = self.encode(premises, premise_lengths)  # [B, P, E]
        b = self.encode(hypotheses, hypothesis_lengths)  # [B, Q, E]
        a_mask, b_mask = (valid_mask(lengths, a.device) for lengths in (premise_lengths, hypothesis_lengths))
        similarity = self.attention(a, b)  # [B, P, Q]; equation 11
        to_b = masked_softmax(similarity, b_mask, memory_efficient=True)  # else padding takes a share
        to_a = masked_softmax(similarity.transpose(1, 2), a_mask, memory_efficient=True)
        b_for_a = weighted_sum(b, to_b)  # [B, P, E]; equation 12
        a_for_b = weighted_sum(a, to_a)  # [B, Q, E]; equation 13
        pooled = [
            *self.compose(a, b_for_a, premise_lengths, a_mask),
            *self.compose(b, a_for_b, hypothesis_lengths, b_mask),
        ]
        return self.output(torch.cat(pooled, dim=1))

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Input encoding (section 3.1): [B, T, D] → [B, T, E]."""
        projected = self.projection(self.input_dropout(x))
        encoded = self.encoder(projected, lengths)  # [B, T, 2H]
        return torch.cat([encoded, projected], dim=2) if self.shortcut else encoded

    def compose(self, own: Tensor, other: Tensor, lengths: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Enhancement and inference composition (equations 14 to 19): [B, T, E] twice → mean and maximum [B, 2H]."""
        enhanced = self.enhancement(torch.cat([own, other, own - other, own * other], dim=2))  # [B, T, H]
        states = self.inference(self.input_dropout(enhanced), lengths)  # [B, T, 2H]
        return masked_mean(states, mask.unsqueeze(2), dim=1), masked_max(states, mask.unsqueeze(2), dim=1)


def initialise(layer: torch.nn.Module) -> None:
    """Random weights as published: Glorot's, recurrent ones orthogonal, biases 0 but for a forget gate's 1."""
    if isinstance(layer, torch.nn.Linear):
        torch.nn.init.xavier_uniform_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    elif isinstance(layer, torch.nn.LSTM):
        for name, weight in layer.named_parameters():
            if name.startswith("weight_ih"):
                torch.nn.init.xavier_uniform_(weight)
            elif name.startswith("weight_hh"):
                torch.nn.init.orthogonal_(weight)
            else:
                torch.nn.init.zeros_(weight)
                if name.startswith("bias_hh"):
                    with torch.no_grad():
                        weight[layer.hidden_size : 2 * layer.hidden_size] = 1.0
