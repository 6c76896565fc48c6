"""Full softmax, the output layer of subword models (Li et al. 2019, ELMo-Sub), perhaps tied with the input.

Tied (Press and Wolf 2017), the vectors of classes are those that the encoder reads. With projection regularisation,
scores are V P h, and λ‖P‖₂ is added to the loss.
Letters: N targets, P projection, C classes.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import BEGIN, END, UNKNOWN, Corpus
from elmoc.errors import InputError
from elmoc.settings import setting
from elmoc.word_vectors.subwords import BOUNDARY
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Loss, Targets
from pretrain.output_layers.softmax import SoftmaxOutput, SoftmaxScorer, SoftmaxSettings


class FullSoftmaxOutput(SoftmaxOutput):
    """A vector and a bias for each class."""

    def __init__(self, projection_size: int, types: int, classes: int, settings: "FullSoftmaxSettings") -> None:
        super().__init__(types, classes)
        self.rows = nn.Parameter(torch.empty(classes, projection_size))
        self.bias = nn.Parameter(torch.zeros(classes))
        nn.init.normal_(self.rows, std=projection_size**-0.5)
        self.regularisation = settings.projection_regularisation
        self.projection = nn.Parameter(torch.eye(projection_size)) if self.regularisation else None
        self._tied = settings.tied

    @property
    def tied_rows(self) -> nn.Parameter | None:
        return self.rows if self._tied else None

    def scores(self, states: Tensor) -> Tensor:
        """float32 [N, C]"""
        if self.projection is not None:
            states = F.linear(states, self.projection)
        return F.linear(states, self.rows, self.bias).float()

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`: the negative log-likelihood; no target is masked."""
        classes = self.class_of(targets.ids).flatten()
        total = F.cross_entropy(self.scores(states.flatten(0, 1)), classes, reduction="sum")
        if self.projection is not None:
            total = total + self.regularisation * self.projection.norm() * len(classes)
        counted = classes.new_tensor(len(classes))
        return Loss(total, counted, counted - counted)

    def log_probabilities(self, states: Tensor) -> Tensor:
        return self.scores(states).log_softmax(dim=1)


@dataclass(frozen=True)
class FullSoftmaxSettings(SoftmaxSettings):
    """The softmax over all classes.

    tied: the vectors of classes are those of the input layer, which has to have trained ones.
    projection_regularisation: λ, e.g. 0.15; 0: there is no projection.
    """

    kind: ClassVar[str] = "softmax"
    shown_of_subwords: ClassVar[tuple[tuple[str, str], ...]] = (("of words", "word_perplexity"),)

    tied: bool = False
    projection_regularisation: float = setting(0.0, least=0, most=1e3)

    def __post_init__(self) -> None:
        if self.tied and self.types:
            raise InputError("output_layer.tied needs a class for each type: leave output_layer.types out")

    def multiplications(self, *, projection_size: int, corpus: Corpus, targets: LexiconTable, candidates: int) -> float:
        """Those of the scores of all classes."""
        return projection_size * (self.classes_of(corpus) + projection_size * (self.projection_regularisation > 0))

    def activation_bytes(self, *, corpus: Corpus, words: int, candidates: int) -> int:
        """Scores, their softmax and its gradient."""
        return 3 * 4 * words * self.classes_of(corpus)

    def build(self, *, projection_size: int, corpus: Corpus, targets: LexiconTable) -> FullSoftmaxOutput:
        return FullSoftmaxOutput(projection_size, self.types_of(corpus), self.classes_of(corpus), self)

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """That of all softmaxes, and whether there is a projection, and vectors that are tied."""
        projection = {"projection": True} if self.projection_regularisation else {}
        tied = {"tied": True} if self.tied else {}
        return super().record(corpus=corpus, targets=targets) | projection | tied

    def scorer(self, *, corpus: Corpus, targets: LexiconTable, candidates: int, device: torch.device) -> SoftmaxScorer:
        """With `word_perplexity` where the corpus is of subwords."""
        begins = None
        if corpus.record.subwords:
            marks = (BEGIN, END, UNKNOWN)
            begins = np.array([unit in marks or unit.startswith(BOUNDARY) for unit in corpus.lexicon])
        return self.scorer_of(corpus, candidates, begins_word=begins)
