"""Continuous output: the distance to the fixed vector of the next word (Li et al. 2019, Eq. 2)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmoc.corpus import Corpus
from elmoc.settings import setting
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import FROZEN, TRAINED, CandidateSettings, Loss, Targets
from pretrain.output_layers.distances import cosine_loss, l2_loss, max_margin_loss
from pretrain.output_layers.linear import LinearOutput, LinearSettings
from pretrain.output_layers.retrieval import Retriever
from pretrain.output_layers.von_mises_fisher import von_mises_fisher_loss

LOSSES = ("cosine", "l2", "von_mises_fisher", "max_margin")


class ContinuousOutput(LinearOutput):
    """The linear layer with the distance that its settings name."""

    settings: "ContinuousSettings"

    def loss(self, states: Tensor, targets: Targets) -> Loss:
        """That of one word; a target whose vector is all zeros has no direction and is masked."""
        predictions, settings = self.predict(states), self.settings
        if settings.loss == "max_margin":
            assert targets.candidates is not None
            return max_margin_loss(predictions, targets.candidates, margin=settings.margin)
        assert targets.vectors is not None
        if settings.loss == "von_mises_fisher":
            return von_mises_fisher_loss(
                predictions,
                targets.vectors,
                length_weight=settings.length_weight,
                product_weight=settings.product_weight,
            )
        return {"cosine": cosine_loss, "l2": l2_loss}[settings.loss](predictions, targets.vectors)


@dataclass(frozen=True)
class ContinuousSettings(LinearSettings):
    """The continuous output for the target table `data.target_vectors`.

    loss: `cosine`, 1 − cos(ŷ, w); `l2`, ‖ŷ − w‖; `von_mises_fisher`, the negative log-likelihood of w's direction;
    `max_margin`, by how much the true word's cosine fails to be `margin` above that of another word of the window.
    length_weight, product_weight: λ₁ and λ₂ of `von_mises_fisher`; 0 and 1 leave its two regularisers out.
    margin: γ of `max_margin`.
    """

    kind: ClassVar[str] = "continuous"
    reads_target_vectors: ClassVar[bool] = True
    shown: ClassVar[tuple[tuple[str, str], ...]] = (
        ("cosine", "cosine"),
        ("accuracy@1", "accuracy_at_1"),
        ("accuracy@10", "accuracy_at_10"),
        ("reciprocal rank", "reciprocal_rank"),
    )

    loss: str = setting("cosine", choices=LOSSES)
    length_weight: float = setting(0.02, least=0, most=1e3)
    product_weight: float = setting(0.1, above=0, most=1)
    margin: float = setting(0.5, above=0, most=2)

    @property
    def metric(self) -> str:
        """The cosine, but with `max_margin`, which is about the order of words alone."""
        return super().metric if self.loss == "max_margin" else "cosine"

    @property
    def candidates(self) -> CandidateSettings | None:
        """The types of a window's targets, among which `max_margin` finds another word."""
        return CandidateSettings() if self.loss == "max_margin" else None

    def operations(
        self, *, projection_size: int, corpus: Corpus, targets: LexiconTable, words: int, candidates: int
    ) -> float:
        """Those of the linear layer, and of `max_margin` the cosines with the candidates, and of these with each other.

        The last have no gradient, and are done once for a window.
        """
        cosines = FROZEN * candidates + 2 * candidates**2 / words
        return self.words_ahead * targets.size * (TRAINED * projection_size + cosines)

    def activation_bytes(self, *, corpus: Corpus, words: int, candidates: int) -> int:
        """Of `max_margin` the cosines with the prediction, those with the target, and their difference."""
        return self.words_ahead * 3 * 4 * words * candidates if self.loss == "max_margin" else 0

    def build(self, *, projection_size: int, corpus: Corpus, targets: LexiconTable) -> ContinuousOutput:
        return ContinuousOutput(projection_size, targets.size, self)

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """That of all linear layers, and the loss where it is not the cosine."""
        return super().record(corpus=corpus, targets=targets) | ({} if self.loss == "cosine" else {"loss": self.loss})

    def scorer(self, *, corpus: Corpus, targets: LexiconTable, candidates: int, device: torch.device) -> Retriever:
        """Cosines, and ranks by cosine."""
        return Retriever(corpus, targets, candidates, device)
