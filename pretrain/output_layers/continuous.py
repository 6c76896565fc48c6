"""Continuous output: the cosine distance to the fixed vector of the next word (Li et al. 2019, Eq. 2)."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.output_layers import Loss, OutputLayer, OutputLayerSettings, Targets
from pretrain.output_layers.retrieval import Retriever


class ContinuousOutput(nn.Linear, OutputLayer):
    """ŷ_t = W_y out_t + b_y, compared with the target vector (Li et al. 2019, footnote 2 and Eq. 2)."""

    def forward(self, states: Tensor, targets: Targets) -> Loss:  # type: ignore[override]
        """See `OutputLayer`; a target whose vector is all zeros has no direction and is masked."""
        assert targets.vectors is not None
        return cosine_loss(self.predict(states), targets.vectors)

    def predict(self, states: Tensor) -> Tensor:
        """Top layer states [..., P] → predicted vectors, float32 [..., E]."""
        return super().forward(states).float()


@dataclass(frozen=True)
class ContinuousSettings(OutputLayerSettings):
    """The continuous output: nothing to set but the target table, which is `data.target_vectors`."""

    kind: ClassVar[str] = "continuous"
    reads_target_vectors: ClassVar[bool] = True
    metric: ClassVar[str] = "cosine"
    shown: ClassVar[tuple[tuple[str, str], ...]] = (
        ("cosine", "cosine"),
        ("accuracy@1", "accuracy_at_1"),
        ("accuracy@10", "accuracy_at_10"),
        ("reciprocal rank", "reciprocal_rank"),
    )

    def build(self, *, projection_size: int, corpus: Corpus, targets: VectorTable) -> ContinuousOutput:
        return ContinuousOutput(projection_size, targets.size)

    def record(self, targets: VectorTable) -> dict[str, Any]:
        """The target vectors by origin and fingerprint, and how they were processed."""
        return {"kind": self.kind, **asdict(targets.source)}

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
