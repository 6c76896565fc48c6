"""Output layers: the interface of the layer that an encoder is trained against, one a direction.

Letters: B streams, T time, P projection, E width of target vectors, N targets, V lexicon size.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from elmoc.corpus import Corpus
from elmoc.encoders.bidirectional import direction_name
from elmoc.word_vectors.table import VectorTable


class Targets(NamedTuple):
    """The words that a window has to predict."""

    ids: Tensor
    """int64 [B, T]: rows of the lexicon"""
    vectors: Tensor | None
    """float32 [B, T, E]: their vectors in the target table; None unless the output layer asks for them"""


class Loss(NamedTuple):
    """The loss of a batch, and what it was taken over: sums, to which other processes add theirs."""

    total: Tensor
    """Scalar: summed over the counted targets."""
    counted: Tensor
    """Scalar: targets that the loss is taken over."""
    masked: Tensor
    """Scalar: targets that are left out."""


class OutputLayer(nn.Module, ABC):
    """The output layer of one direction: it owns its weights and its loss."""

    @abstractmethod
    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """The loss of the top layer states [B, T, P] against the words they have to predict."""

    @abstractmethod
    def predict(self, states: Tensor) -> Tensor:
        """What a `Scorer` of this kind scores, float32 [..., D], from top layer states [..., P]."""


class Scorer(Protocol):
    """Scores the held-out predictions of one direction."""

    def score(
        self, layer: OutputLayer, predictions: Tensor, ids: np.ndarray, parts: Mapping[str, slice]
    ) -> dict[str, dict[str, float]]:
        """For parts of predictions [N, D] of the types `ids` [N], their metrics by the name of the part.

        Among them is the `metric` of `OutputLayerSettings`. Beside each stands that of the best constant prediction,
        named `constant_…`, where there is one.
        """


@dataclass(frozen=True)
class OutputLayerSettings(ABC):
    """The settings of one kind of output layer, and all that training has to know of the kind."""

    kind: ClassVar[str]
    """Its name in configs and model directories."""
    reads_target_vectors: ClassVar[bool]
    """Whether the rows of the target table are streamed for it."""
    metric: ClassVar[str]
    """The held-out metric that chooses the exported model; higher is better."""
    shown: ClassVar[tuple[tuple[str, str], ...]]
    """(label, metric) of what an evaluation prints."""

    @abstractmethod
    def build(self, *, projection_size: int, corpus: Corpus, targets: VectorTable) -> OutputLayer:
        """An output layer with random weights."""

    @abstractmethod
    def record(self, targets: VectorTable) -> dict[str, Any]:
        """What tells it apart from others, for a model directory: `kind` and more; `origin` is not compared."""

    def scoring_bytes(self, *, targets: VectorTable, words: int, candidates: int) -> int:
        """Roughly the memory that scoring `words` held-out words takes; 0 where that is little."""
        return 0

    @abstractmethod
    def scorer(self, *, corpus: Corpus, targets: VectorTable, candidates: int, device: torch.device) -> Scorer:
        """What scores its predictions, the true word among the `candidates` most frequent types."""


class OutputLayers(nn.Module):
    """The output layers of a model, one a direction, without any weight in common."""

    def __init__(self, layers: dict[str, OutputLayer]) -> None:
        super().__init__()
        for direction, layer in layers.items():
            self.add_module(direction_name(direction), layer)

    def direction(self, name: str) -> OutputLayer:
        """The output layer of one direction."""
        module = getattr(self, direction_name(name))
        assert isinstance(module, OutputLayer)
        return module
