"""Softmax output layers: what do distributions over a closed vocabulary have in common,
and how are they scored?

The classes are the first K types of the lexicon and, where it has more, `<unk>`. Both
directions share one layer, as ELMo's do. Letters: N targets, P projection, V lexicon
size, K types, C classes.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import (
    Loss,
    OutputLayer,
    OutputLayerSettings,
    class_counts,
    shares,
)
from pretrain.output_layers.retrieval import perplexity, retrieval

# Log-probabilities that are computed at once in evaluation: 256 MiB of float32, and as
# many scores. With fewer, the vectors of a million classes are read too often.
SCORES = 2**26


@dataclass(frozen=True)
class SoftmaxSettings(OutputLayerSettings):
    """What all kinds of softmax can be told."""

    shared: ClassVar[bool] = True

    types: Annotated[
        int,
        Meta(
            ge=0,
            le=2**31 - 2,
            description="K, the most frequent types of the lexicon, which are told "
            "apart; one more class, `<unk>`, is of rarer words; 0: all",
        ),
    ] = 0

    def types_of(self, corpus: Corpus) -> int:
        """K, as far as the lexicon has so many."""
        return min(self.types or corpus.types, corpus.types)

    def classes_of(self, corpus: Corpus) -> int:
        """C: K, and one more for `<unk>` where there are rarer types."""
        return len(class_counts(corpus.counts, self.types))

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """The lexicon that its classes are the types of, and how many they are."""
        return {
            "kind": self.kind,
            "lexicon": corpus.record.lexicon_fingerprint,
            "types": self.types_of(corpus),
        }

    def scorer(
        self,
        *,
        corpus: Corpus,
        counts_read: np.ndarray,
        targets: LexiconTable,
        candidates: int,
        device: torch.device,
    ) -> "SoftmaxScorer":
        asked = min(candidates, corpus.types)
        types = self.types_of(corpus)
        return SoftmaxScorer(
            class_counts(counts_read, self.types),
            candidates=min(asked, types),
            compares=asked <= types,
        )


class SoftmaxOutput(OutputLayer):
    """log P(class | state), of the classes 0 … C − 1."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def class_of(self, ids: Tensor) -> Tensor:
        """The class of each type: its id, or K for a rarer one."""
        return ids.clamp(max=self.classes - 1)

    def predict(self, states: Tensor) -> Tensor:
        """The top layer states themselves, float32 [..., P]."""
        return states.float()

    @abstractmethod
    def scored(
        self, states: Tensor, classes: Tensor, candidates: int
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities, float32.

        Args:
            states: of the top layer, [N, P].
            classes: a class for each state, [N].
            candidates: how many of the first classes are wanted.

        Returns:
            Those of the candidates [N, candidates], and those of the classes [N].
        """


def every_target(total: Tensor, classes: Tensor) -> Loss:
    """The loss of targets that all have a class [N]: none is masked."""
    counted = torch.full((), len(classes), dtype=torch.int64, device=classes.device)
    return Loss(total, counted, torch.zeros_like(counted))


class SoftmaxScorer:
    """Ranks and perplexity by log-probabilities.

    Candidates are the most frequent types, as with other output layers, as far as they
    are among the K. `perplexity` takes targets among the candidates, and these alone as
    classes, so that output layers compare on one corpus, all of whose candidates have
    target vectors (others leave those without one out). Where K is smaller than the
    candidates of other layers it would not compare, and is left out.
    `vocabulary_perplexity` takes all targets over all classes, `<unk>` one of them.

    Args:
        counts: [C], how often an epoch reads each class.
        candidates: how many there are.
        compares: whether other output layers have the same candidates.
    """

    def __init__(
        self, counts: np.ndarray, *, candidates: int, compares: bool = True
    ) -> None:
        self.candidates = candidates
        self._compares = compares
        self._constant = torch.from_numpy(np.log(shares(counts)))  # float64 [C]

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """See `Scorer`."""
        assert isinstance(layer, SoftmaxOutput)
        targets = torch.from_numpy(ids.astype(np.int64))  # [N]
        inside = targets < self.candidates
        ranks = torch.zeros_like(targets)
        # log-likelihoods among the candidates, and among all classes
        among = torch.zeros(len(targets))
        overall = torch.zeros(len(targets))
        for block in torch.arange(len(targets)).split(max(1, SCORES // layer.classes)):
            classes = layer.class_of(targets[block]).to(predictions.device)
            scores, true = layer.scored(predictions[block], classes, self.candidates)
            overall[block] = true.cpu()
            # a candidate's own score: computed apart, it would differ by rounding
            true = scores.gather(1, classes.clamp(max=self.candidates - 1).unsqueeze(1))
            ranks[block] = (scores >= true).sum(dim=1).cpu() * inside[block]
            among[block] = (true[:, 0] - scores.logsumexp(dim=1)).cpu()
        # The best constant prediction are the frequencies in the text read; a constant
        # ranking is the order of frequency in the corpus: that of ids.
        constants = self._constant[layer.class_of(targets)]
        whole = self._constant[: self.candidates].logsumexp(dim=0)
        constant_ranks = (targets + 1) * inside
        metrics: dict[str, dict[str, float]] = {}
        for name, part in parts.items():
            own = retrieval(ranks[part])
            own |= retrieval(constant_ranks[part], "constant_")
            found = inside[part]
            constant = constants[part][found] - whole
            if self._compares:
                own["perplexity"] = perplexity(among[part][found])
                own["constant_perplexity"] = perplexity(constant)
            own["vocabulary_perplexity"] = perplexity(overall[part])
            own["constant_vocabulary_perplexity"] = perplexity(constants[part])
            metrics[name] = own
        return metrics
