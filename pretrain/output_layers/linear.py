"""Linear output layers: one linear layer predicts the vector of the next word; their kinds differ in the loss."""

from abc import abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor, nn

from elmoc.corpus import Corpus
from elmoc.settings import setting
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Loss, OutputLayer, OutputLayerSettings, Targets
from pretrain.output_layers.retrieval import Retriever


@dataclass(frozen=True)
class LinearSettings(OutputLayerSettings):
    """What all kinds of linear output layers can be told.

    ahead_weight: of the loss of a second layer, which predicts the word after the next one; 0: there is none.
    """

    ahead_weight: float = setting(0.0, least=0, most=1e3)

    @property
    def words_ahead(self) -> int:
        """Two where there is a second layer."""
        return 2 if self.ahead_weight else 1

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """The target vectors by origin and fingerprint, how they were processed, and whether there are two layers."""
        more = {"words_ahead": self.words_ahead} if self.ahead_weight else {}
        return {"kind": self.kind, **asdict(targets.source), **more}

    def scoring_bytes(self, *, corpus: Corpus, targets: LexiconTable, words: int, candidates: int) -> int:
        """See `Retriever.bytes`."""
        return Retriever.bytes(targets=targets, words=words, candidates=candidates)


class LinearOutput(nn.Linear, OutputLayer):
    """ŷ_t = W_y out_t + b_y (Li et al. 2019, footnote 2): from top layer states [..., P] to vectors [..., E].

    `ahead`, if any, is a second layer, which predicts the word after the next one; its loss is added `ahead_weight`
    times. It makes the encoder keep more of the context, and is of no use afterwards.
    """

    def __init__(self, projection_size: int, vector_size: int, settings: LinearSettings) -> None:
        super().__init__(projection_size, vector_size)
        self.settings = settings
        alone = replace(settings, ahead_weight=0.0)
        self.ahead = type(self)(projection_size, vector_size, alone) if settings.ahead_weight else None

    def forward(self, states: Tensor, targets: Targets) -> Loss:  # type: ignore[override]
        """See `OutputLayer`: the loss of the next word, with that of the word after it where there is a layer for it.

        The weighted sum is divided by the number of next words that count.
        """
        loss = self.loss(states, targets)
        if self.ahead is None:
            return loss
        assert targets.after is not None
        return loss.plus(self.ahead(states, targets.after), self.settings.ahead_weight)

    @abstractmethod
    def loss(self, states: Tensor, targets: Targets) -> Loss:
        """That of one word; a target whose vector is all zeros is masked."""

    def predict(self, states: Tensor) -> Tensor:
        """Top layer states [..., P] → predicted vectors, float32 [..., E]."""
        return super().forward(states).float()
