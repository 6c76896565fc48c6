"""Full softmax, the output layer of subword models (Li et al. 2019, ELMo-Sub).

Letters: N targets, P projection, C classes.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Loss, Targets
from pretrain.output_layers.output_embedding import EmbeddingSoftmax, EmbeddingSoftmaxSettings


class FullSoftmaxOutput(EmbeddingSoftmax):
    """A vector and a bias for each class."""

    def __init__(self, projection_size: int, types: int, classes: int, settings: "FullSoftmaxSettings") -> None:
        super().__init__(projection_size, types, classes, settings, bias_in_rows=False)

    def scores(self, states: Tensor) -> Tensor:
        """float32 [N, C]"""
        return F.linear(self.projected(states), self.rows, self.bias).float()

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`: the negative log-likelihood; no target is masked."""
        classes = self.class_of(targets.ids).flatten()
        total = F.cross_entropy(self.scores(states.flatten(0, 1)), classes, reduction="sum")
        counted = torch.full((), len(classes), dtype=torch.int64, device=classes.device)
        return self.regularised(Loss(total, counted, counted - counted))

    def log_probabilities(self, states: Tensor) -> Tensor:
        return self.scores(states).log_softmax(dim=1)


@dataclass(frozen=True)
class FullSoftmaxSettings(EmbeddingSoftmaxSettings):
    """The softmax over all classes."""

    kind: ClassVar[str] = "softmax"

    def build(self, *, projection_size: int, corpus: Corpus, targets: LexiconTable) -> FullSoftmaxOutput:
        return FullSoftmaxOutput(projection_size, self.types_of(corpus), self.classes_of(corpus), self)
