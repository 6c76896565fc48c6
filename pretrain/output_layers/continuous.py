"""Continuous output: the cosine distance to the fixed vector of the next word (Li et al. 2019, Eq. 2)."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.settings import setting
from elmoc.word_vectors.table import VectorTable
from pretrain.output_layers import Loss, OutputLayer, OutputLayerSettings, Targets
from pretrain.output_layers.retrieval import Retriever


class ContinuousOutput(nn.Linear, OutputLayer):
    """ŷ_t = W_y out_t + b_y, compared with the target vector (Li et al. 2019, footnote 2 and Eq. 2).

    `ahead`, if any, is a second layer, which predicts the word after the next one; its loss is added `ahead_weight`
    times. It makes the encoder keep more of the context, and is of no use afterwards.
    """

    def __init__(self, projection_size: int, vector_size: int, *, ahead_weight: float = 0.0) -> None:
        super().__init__(projection_size, vector_size)
        self.ahead_weight = ahead_weight
        self.ahead = ContinuousOutput(projection_size, vector_size) if ahead_weight else None

    def forward(self, states: Tensor, targets: Targets) -> Loss:  # type: ignore[override]
        """See `OutputLayer`: the loss of the next word, with that of the word after it where there is a layer for it.

        The weighted sum is divided by the number of next words that count.
        """
        loss = self.loss(states, targets)
        if self.ahead is None:
            return loss
        assert targets.after is not None
        return loss.plus(self.ahead(states, targets.after), self.ahead_weight)

    def loss(self, states: Tensor, targets: Targets) -> Loss:
        """That of one word; a target whose vector is all zeros has no direction and is masked."""
        assert targets.vectors is not None
        return cosine_loss(self.predict(states), targets.vectors)

    def predict(self, states: Tensor) -> Tensor:
        """Top layer states [..., P] → predicted vectors, float32 [..., E]."""
        return super().forward(states).float()


@dataclass(frozen=True)
class ContinuousSettings(OutputLayerSettings):
    """The continuous output for the target table `data.target_vectors`.

    ahead_weight: of the loss of a second layer, which predicts the word after the next one; 0: there is none.
    """

    kind: ClassVar[str] = "continuous"
    reads_target_vectors: ClassVar[bool] = True
    metric: ClassVar[str] = "cosine"
    shown: ClassVar[tuple[tuple[str, str], ...]] = (
        ("cosine", "cosine"),
        ("accuracy@1", "accuracy_at_1"),
        ("accuracy@10", "accuracy_at_10"),
        ("reciprocal rank", "reciprocal_rank"),
    )

    ahead_weight: float = setting(0.0, least=0, most=1e3)

    @property
    def words_ahead(self) -> int:
        """Two where there is a second layer."""
        return 2 if self.ahead_weight else 1

    def build(self, *, projection_size: int, corpus: Corpus, targets: VectorTable) -> ContinuousOutput:
        return ContinuousOutput(projection_size, targets.size, ahead_weight=self.ahead_weight)

    def record(self, targets: VectorTable) -> dict[str, Any]:
        """The target vectors by origin and fingerprint, how they were processed, and whether there are two layers."""
        more = {"words_ahead": self.words_ahead} if self.ahead_weight else {}
        return {"kind": self.kind, **asdict(targets.source), **more}

    def scoring_bytes(self, *, targets: VectorTable, words: int, candidates: int) -> int:
        """See `Retriever.bytes`."""
        return Retriever.bytes(targets=targets, words=words, candidates=candidates)

    def scorer(self, *, corpus: Corpus, targets: VectorTable, candidates: int, device: torch.device) -> Retriever:
        """Cosines, and ranks by cosine."""
        return Retriever(corpus, targets, candidates, device)


def cosine_loss(predictions: Tensor, targets: Tensor) -> Loss:
    """Σ 1 − cos(prediction, target) over the targets that have a direction; both are [..., E].

    `F.cosine_similarity` bounds each norm from below (by 1e-8), so that a prediction of zeros has a cosine of 0 and a
    finite gradient.
    """
    has_direction = targets.any(dim=-1)  # [...]
    cosine = F.cosine_similarity(predictions.float(), targets, dim=-1)  # [...]
    counted = has_direction.sum()
    total = ((1 - cosine) * has_direction).sum()
    return Loss(total, counted, has_direction.numel() - counted)
