"""Softmaxes with an output embedding, a vector for each class, which may be tied with the input layer's.

Tied (Press and Wolf 2017), the vectors of classes are those that the encoder reads. With projection regularisation,
a trained matrix multiplies the states before they meet these, and λ times its norm is added to the loss.
Letters: N targets, P projection.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.settings import setting
from elmoc.word_vectors.subwords import begins_word
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Loss
from pretrain.output_layers.softmax import SoftmaxOutput, SoftmaxScorer, SoftmaxSettings


@dataclass(frozen=True)
class EmbeddingSoftmaxSettings(SoftmaxSettings):
    """Those of softmaxes with an output embedding.

    tied: the vectors of classes are those of the input layer, which has to have trained ones.
    projection_regularisation: λ, e.g. 0.15; 0: there is no projection matrix.
    """

    tied: bool = False
    projection_regularisation: float = setting(0.0, least=0, most=1e3)

    def __post_init__(self) -> None:
        if self.tied and self.types:
            raise InputError("output_layer.tied needs a class for each type: leave output_layer.types out")

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """That of all softmaxes, and whether there is a projection, and vectors that are tied."""
        projection = {"projection": True} if self.projection_regularisation else {}
        tied = {"tied": True} if self.tied else {}
        return super().record(corpus=corpus, targets=targets) | projection | tied

    def scorer(self, *, corpus: Corpus, targets: LexiconTable, candidates: int, device: torch.device) -> SoftmaxScorer:
        """With `word_perplexity` where the corpus is of subwords."""
        begins = begins_word(corpus.lexicon) if corpus.record.subwords else None
        return self.scorer_of(corpus, candidates, begins_word=begins)


class EmbeddingSoftmax(SoftmaxOutput):
    """A vector for each class, and perhaps a projection of the states before it.

    Args:
        bias_in_rows: whether the bias of a class is a last number behind its vector, so that both are read at once, or
            apart, as it has to be where vectors are tied.
    """

    def __init__(
        self,
        projection_size: int,
        types: int,
        classes: int,
        settings: EmbeddingSoftmaxSettings,
        *,
        bias_in_rows: bool,
    ) -> None:
        super().__init__(types, classes)
        self.rows = nn.Parameter(torch.empty(classes, projection_size + bias_in_rows))
        nn.init.normal_(self.rows, std=projection_size**-0.5)
        if bias_in_rows:
            with torch.no_grad():
                self.rows[:, -1].zero_()
        self.bias = None if bias_in_rows else nn.Parameter(torch.zeros(classes))
        self.regularisation = settings.projection_regularisation
        self.projection = nn.Parameter(torch.eye(projection_size)) if self.regularisation else None
        self._tied = settings.tied

    @property
    def tied_rows(self) -> nn.Parameter | None:
        return self.rows if self._tied else None

    def vectors_and_bias(self, rows: Tensor, classes: Tensor | slice) -> tuple[Tensor, Tensor]:
        """The vectors [n, P] and the biases [n] of classes, from their rows."""
        return (rows[:, :-1], rows[:, -1]) if self.bias is None else (rows, self.bias[classes])

    def projected(self, states: Tensor) -> Tensor:
        """Top layer states [N, P], multiplied by the projection where there is one."""
        return states if self.projection is None else F.linear(states, self.projection)

    def regularised(self, loss: Loss) -> Loss:
        """With λ times the Frobenius norm of the projection, if there is one, for every target that is counted."""
        if self.projection is None:
            return loss
        return loss._replace(total=loss.total + self.regularisation * self.projection.norm() * loss.counted)
