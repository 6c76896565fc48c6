"""Natural language inference (SNLI): whether a premise entails a hypothesis,
contradicts it, or neither.

The model is ESIM, the enhanced sequential inference model of Chen et al. (2017),
"Enhanced LSTM for Natural Language Inference", section 3, sequential model only, with
dropout and hyper-parameters of the version that was published with ELMo; the score is
accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from allennlp_light.modules.feedforward import FeedForward
from allennlp_light.modules.input_variational_dropout import InputVariationalDropout
from allennlp_light.modules.matrix_attention import DotProductMatrixAttention
from allennlp_light.nn.initializers import lstm_hidden_bias
from allennlp_light.nn.util import masked_max, masked_mean, masked_softmax, weighted_sum
from msgspec import Meta
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs, valid_mask
from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.modules.lstm import BiLstm
from downstream.readers.label_sets import NLI
from downstream.readers.labelled_rows import read_labelled_rows
from downstream.settings import (
    MOST_UNITS,
    SMALL_INPUTS,
    Dropout,
    ReaderOptions,
    Size,
    TrainingSettings,
)
from downstream.tasks.classification import (
    ClassificationTask,
    Classifier,
    Probabilities,
)
from elmoc.errors import InputError
from elmoc.text.tokenizer import tokenise_sentence

# How weights start, as published, by a part of their names: the first one counts. Of an
# LSTM's two biases, one is 1 at the forget gate.
_STARTS = {
    "weight_hh": torch.nn.init.orthogonal_,
    "weight": torch.nn.init.xavier_uniform_,
    "bias_hh": lstm_hidden_bias,
    "bias": torch.nn.init.zeros_,
}


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and the label of the pair.

    texts: the two as the file has them.
    """

    premise: TaskSentence
    hypothesis: TaskSentence
    label: str
    texts: list[str]


@dataclass(frozen=True, kw_only=True)
class SnliSettings(TrainingSettings):
    """Hyper-parameters of the probe."""

    projection_size: Annotated[
        int,
        Meta(
            ge=0,
            le=MOST_UNITS,
            description="units of a linear layer between the inputs and the first "
            "LSTM (0: there is none)",
        ),
    ] = 0
    hidden_size: Annotated[
        Size, Meta(description="units of each layer; of the LSTMs, each direction")
    ] = 300
    dropout: Annotated[
        Dropout,
        Meta(
            description="dropout on the inputs (before the projection), on the "
            "second LSTM's inputs and around the last hidden layer"
        ),
    ] = 0.5
    shortcut: Annotated[
        bool,
        Meta(
            description="a shortcut around the first LSTM: attention and "
            "enhancement see its inputs beside its outputs"
        ),
    ] = False


class SnliProbe(Classifier[SentencePair]):
    """ESIM on the inputs."""

    def __init__(
        self, *, inputs: ProbeInputs, settings: SnliSettings, labels: Sequence[str]
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.labels = labels
        self.model = Esim(input_size=inputs.size, labels=len(labels), settings=settings)

    def logits(self, examples: Sequence[SentencePair]) -> Tensor:
        premises = self.inputs([example.premise for example in examples])
        hypotheses = self.inputs([example.hypothesis for example in examples])
        return self.model(*premises, *hypotheses)


class Esim(torch.nn.Module):
    """Puts pairs of sentences into one of `labels` classes; the words' inputs have the
    size `input_size` (D).

    Dropout on the inputs, before the projection, and on the second LSTM's inputs has
    one mask a sentence. With the setting `shortcut` a word is represented by the first
    LSTM's outputs and inputs side by side (as in the shortcut-stacked encoders of Nie
    and Bansal 2017), so that E, the size of a word's representation, is 2H plus the
    size of the projection; without it, E is 2H.
    """

    def __init__(self, *, input_size: int, labels: int, settings: SnliSettings) -> None:
        super().__init__()
        hidden_size = settings.hidden_size
        dropout = settings.dropout
        projected_size = settings.projection_size or input_size
        self.shortcut = settings.shortcut
        # One mask for all words of a sentence.
        self.input_dropout = InputVariationalDropout(dropout)
        self.projection = (
            torch.nn.Linear(input_size, projected_size)
            if settings.projection_size
            else torch.nn.Identity()
        )
        self.encoder = BiLstm(input_size=projected_size, hidden_size=hidden_size)
        # E
        width = self.encoder.output_size + (projected_size if self.shortcut else 0)
        self.attention = DotProductMatrixAttention()
        self.enhancement = FeedForward(4 * width, 1, hidden_size, torch.nn.ReLU())
        self.inference = BiLstm(input_size=hidden_size, hidden_size=hidden_size)
        self.output = torch.nn.Sequential(
            torch.nn.Dropout(dropout),
            FeedForward(
                4 * self.inference.output_size, 1, hidden_size, torch.nn.ReLU(), dropout
            ),
            torch.nn.Linear(hidden_size, labels),
        )
        for name, weight in self.named_parameters():
            start = next(_STARTS[part] for part in _STARTS if part in name)
            start(weight)

    def forward(
        self,
        premises: Tensor,
        premise_lengths: Tensor,
        hypotheses: Tensor,
        hypothesis_lengths: Tensor,
    ) -> Tensor:
        """[B, P, D] and [B, Q, D] with their lengths [B] (on the CPU, each at least 1)
        → float32 [B, labels].
        """
        a = self.encode(premises, premise_lengths)  # [B, P, E]
        b = self.encode(hypotheses, hypothesis_lengths)  # [B, Q, E]
        a_mask = valid_mask(premise_lengths, a.device)
        b_mask = valid_mask(hypothesis_lengths, a.device)
        similarity = self.attention(a, b)  # [B, P, Q]; equation 11
        # Without `memory_efficient` padding would take a share.
        to_b = masked_softmax(similarity, b_mask, memory_efficient=True)
        to_a = masked_softmax(similarity.transpose(1, 2), a_mask, memory_efficient=True)
        b_for_a = weighted_sum(b, to_b)  # [B, P, E]; equation 12
        a_for_b = weighted_sum(a, to_a)  # [B, Q, E]; equation 13
        premise = self.compose(a, b_for_a, premise_lengths, a_mask)
        hypothesis = self.compose(b, a_for_b, hypothesis_lengths, b_mask)
        return self.output(torch.cat(premise + hypothesis, dim=1))

    def encode(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Input encoding (section 3.1): [B, T, D] → [B, T, E]."""
        projected = self.projection(self.input_dropout(x))
        encoded = self.encoder(projected, lengths)  # [B, T, 2H]
        return torch.cat([encoded, projected], dim=2) if self.shortcut else encoded

    def compose(
        self, own: Tensor, other: Tensor, lengths: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Enhancement and inference composition (equations 14 to 19): [B, T, E] twice →
        mean and maximum [B, 2H].
        """
        beside = torch.cat([own, other, own - other, own * other], dim=2)
        enhanced = self.enhancement(beside)  # [B, T, H]
        states = self.inference(self.input_dropout(enhanced), lengths)  # [B, T, 2H]
        words = mask.unsqueeze(2)
        return masked_mean(states, words, dim=1), masked_max(states, words, dim=1)


class SnliTask(ClassificationTask[SentencePair]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[SentencePair]:
        """Read labelled rows; pairs without a gold label are left out. Tokenised text
        stays nearly as it is.
        """
        pairs = []
        for row in read_labelled_rows(path, NLI):
            words = list(map(tokenise_sentence, row.texts))
            if not (all(words) and len(row.label.split()) == 1):
                raise InputError(
                    f"{path}, line {row.line}: a label of one word and two sentences "
                    "are needed"
                )
            premise, hypothesis = [
                make_sentence(each, file=path, line=row.line) for each in words
            ]
            pairs.append(SentencePair(premise, hypothesis, row.label, row.texts))
        return pairs

    def sentences(self, example: SentencePair) -> list[TaskSentence]:
        return [example.premise, example.hypothesis]

    def vocabulary(self, train: Sequence[SentencePair]) -> dict[str, Any]:
        """SNLI's three labels, or, where there are others, the labels of `train`."""
        found = {example.label for example in train}
        return {"labels": list(NLI.names) if found <= set(NLI.names) else sorted(found)}

    def record(
        self, example: SentencePair, best: str, probabilities: Probabilities
    ) -> dict[str, Any]:
        """The gold label and the sentences as in SNLI, and the prediction."""
        return {
            "gold_label": example.label,
            "predicted_label": best,
            "probabilities": probabilities,
            "sentence1": example.texts[0],
            "sentence2": example.texts[1],
        }


PUBLISHED = SnliSettings(
    learning_rate=4e-4,
    halve_on_plateau=True,
    gradient_norm=10.0,
    batch_size=32,
    epochs=75,
    patience=5,
)

TASK = SnliTask(
    name="snli",
    metric="accuracy",
    unit="pairs",
    item="pairs",
    suffix=".jsonl",
    model=SnliProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        **SMALL_INPUTS,
        learning_rate=1e-3,
        # Seven epochs see no plateau, or see one at different times.
        halve_on_plateau=False,
        decay=0.95,
        epochs=7,
        patience=3,
        projection_size=128,
        hidden_size=100,
        dropout=0.2,
        # With thousands of pairs, words teach the alignment sooner than an LSTM's
        # states do.
        shortcut=True,
    ),
)
