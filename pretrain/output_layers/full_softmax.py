"""Full softmax: how likely is each class, by a vector and a bias of its own (the output
layer of ELMo-Sub)?

The vectors may be tied: the input layer reads them, too (Press and Wolf 2017). With
projection regularisation a trained matrix multiplies the states before they meet the
vectors, and λ times its norm is added to the loss, or its weight decay, as the authors'
code has it.
Letters: N targets, P projection, C classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.errors import InputError
from pretrain.input_layers import InputNetwork, LexiconTable, SharingNetwork
from pretrain.output_layers import Loss, Targets
from pretrain.output_layers.softmax import (
    SoftmaxOutput,
    SoftmaxSettings,
    every_target,
)


class FullSoftmaxOutput(SoftmaxOutput):
    """A vector and a bias for each class."""

    def __init__(
        self, projection_size: int, classes: int, settings: "FullSoftmaxSettings"
    ) -> None:
        super().__init__(classes)
        # A function hides the network that has tied vectors from PyTorch, which would
        # take its weights for this module's.
        self._class_rows: Callable[[], Tensor] | None = None
        if not settings.tied:
            self.rows = nn.Parameter(torch.empty(classes, projection_size))
            nn.init.normal_(self.rows, std=projection_size**-0.5)
        self.bias = nn.Parameter(torch.zeros(classes))
        self.settings = settings
        self.projection = (
            nn.Parameter(torch.eye(projection_size))
            if settings.has_projection
            else None
        )

    def tie(self, network: InputNetwork | None) -> None:
        """See `OutputLayer`; the vectors belong to the network.

        Raises:
            InputError: it has none to share.
        """
        if not self.settings.tied:
            return
        if not isinstance(network, SharingNetwork):
            raise InputError(
                "output_layer.tied needs an input layer that has a vector for each "
                "type: choose input_layer.kind=words, subwords, factorised or alone, "
                "or leave it out"
            )
        self._class_rows = network.class_rows

    def forward(self, states: Tensor, targets: Targets) -> Loss:
        """See `OutputLayer`: the negative log-likelihood; no target is masked."""
        classes = self.class_of(targets.ids).flatten()
        scores = self.scores(states.flatten(0, 1))  # [N, C]
        total = F.cross_entropy(scores, classes, reduction="sum")
        if self.projection is not None:
            penalty = self.settings.penalty(self.projection)
            # for every target that is counted
            total = total + penalty * len(classes)
        return every_target(total, classes)

    def scored(
        self, states: Tensor, classes: Tensor, candidates: int
    ) -> tuple[Tensor, Tensor]:
        scores = self.scores(states).log_softmax(dim=1)
        return scores[:, :candidates], scores.gather(1, classes.unsqueeze(1))[:, 0]

    def scores(self, states: Tensor) -> Tensor:
        """float32 [N, C] of top layer states [N, P]."""
        if self.projection is not None:
            states = F.linear(states, self.projection)
        rows = self._class_rows() if self._class_rows else self.rows
        return F.linear(states, rows, self.bias).float()


@dataclass(frozen=True)
class FullSoftmaxSettings(SoftmaxSettings):
    """The softmax over all classes."""

    kind: ClassVar[str] = "softmax"

    tied: Annotated[
        bool,
        Meta(
            description="classes have the vectors of the input layer, which has to "
            "train some"
        ),
    ] = False
    projection_regularisation: Annotated[
        float,
        Meta(
            ge=0,
            le=1e3,
            description="λ of λ‖P‖ in the loss, e.g. 0.0075; where it and the next "
            "are 0, no projection matrix P",
        ),
    ] = 0.0
    projection_weight_decay: Annotated[
        float,
        Meta(ge=0, le=1e3, description="w of ½w‖P‖² in the loss, e.g. 0.000385"),
    ] = 0.0

    def __post_init__(self) -> None:
        if self.tied and self.types:
            raise InputError(
                "output_layer.tied needs a class for each type: leave "
                "output_layer.types out"
            )

    @property
    def has_projection(self) -> bool:
        """Whether a matrix multiplies the states."""
        return self.projection_regularisation > 0 or self.projection_weight_decay > 0

    def penalty(self, projection: Tensor) -> Tensor:
        """What the matrix [P, P] adds to a target's loss, by its Frobenius norm."""
        norm = projection.norm()
        decay = self.projection_weight_decay / 2 * norm.square()
        return self.projection_regularisation * norm + decay

    def build(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable
    ) -> FullSoftmaxOutput:
        return FullSoftmaxOutput(projection_size, self.classes_of(corpus), self)

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """That of all softmaxes, and whether there is a projection, and vectors that
        are tied.
        """
        record = super().record(corpus=corpus, targets=targets)
        own = {"projection": self.has_projection, "tied": self.tied}
        return record | {name: True for name, is_set in own.items() if is_set}
