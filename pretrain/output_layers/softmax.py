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
from elmoc.word_vectors.subwords import begins_word
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import (
    Loss,
    OutputLayer,
    OutputLayerSettings,
    class_counts,
    log_frequencies,
)
from pretrain.output_layers.retrieval import (
    constant_retrieval,
    perplexity,
    ranks_by_frequency,
    retrieval,
)

# Log-probabilities that are computed at once in evaluation: 64 MiB of float32.
SCORES = 2**24


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
            "apart; 0: all. Where the lexicon has more, there is one "
            "more class, `<unk>`, for rarer words",
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
            "lexicon": corpus.lexicon_fingerprint,
            "types": self.types_of(corpus),
        }

    def scorer(
        self,
        *,
        corpus: Corpus,
        targets: LexiconTable,
        candidates: int,
        device: torch.device,
    ) -> "SoftmaxScorer":
        asked = min(candidates, corpus.types)
        types = self.types_of(corpus)
        begins = begins_word(corpus.lexicon) if corpus.record.subwords else None
        return SoftmaxScorer(
            class_counts(corpus.counts, self.types),
            candidates=min(asked, types),
            compares=asked <= types,
            begins_word=begins,
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
    def log_probabilities(self, states: Tensor) -> Tensor:
        """float32 [N, C] of top layer states [N, P]."""


def every_target(total: Tensor, classes: Tensor) -> Loss:
    """The loss of targets that all have a class [N]: none is masked."""
    counted = torch.full((), len(classes), dtype=torch.int64, device=classes.device)
    return Loss(total, counted, torch.zeros_like(counted))


class SoftmaxScorer:
    """Ranks and perplexity by log-probabilities.

    Candidates are the most frequent types, as with other output layers, as far as they
    are among the K. `perplexity` takes targets among the candidates, and these alone as
    classes, so that output layers compare on one corpus; where K is smaller and other
    layers have more candidates, it would not compare, and is left out.
    `vocabulary_perplexity` takes all targets over all classes, `<unk>` one of them, and
    `word_perplexity`, where types are subwords, words with all their units.

    is_closed: whether all classes have a probability, not the candidates alone.

    Args:
        counts: [C], occurrences of each class in the training text.
        candidates: how many there are.
        compares: whether these are all candidates that other output layers have;
            without, `perplexity` is left out.
        known: bool [candidates], on the CPU: those that can be predicted at all; None:
            all.
        begins_word: bool [V], where types are subwords: whether a word, or the boundary
            of a sentence, begins with it.
    """

    is_closed: ClassVar[bool] = True

    def __init__(
        self,
        counts: np.ndarray,
        *,
        candidates: int,
        compares: bool = True,
        known: Tensor | None = None,
        begins_word: np.ndarray | None = None,
    ) -> None:
        if known is None:
            known = torch.ones(candidates, dtype=torch.bool)
        self.candidates = candidates
        self.known = known
        self.constant = torch.from_numpy(log_frequencies(counts))  # float64 [C]
        self._compares = compares
        self._begins_word = begins_word

    def log_probabilities(self, layer: OutputLayer, predictions: Tensor) -> Tensor:
        """float32 [N, C] of the predictions [N, D] of a layer."""
        assert isinstance(layer, SoftmaxOutput)
        return layer.log_probabilities(predictions)

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """See `Scorer`."""
        targets = torch.from_numpy(ids.astype(np.int64))  # [N]
        # `<unk>` is the last class
        classes = targets.clamp(max=len(self.constant) - 1)
        known = self.known[classes.clamp(max=self.candidates - 1)]
        inside = (targets < self.candidates) & known
        ranks = torch.zeros_like(targets)
        # log-likelihoods among the candidates, and among all classes
        among = torch.zeros(len(targets))
        overall = torch.zeros(len(targets))
        at_once = max(1, SCORES // len(self.constant))
        for block in torch.arange(len(targets)).split(at_once):
            scores = self.log_probabilities(layer, predictions[block])  # [N', C]
            true = scores.gather(1, classes[block].to(scores.device).unsqueeze(1))
            overall[block] = true[:, 0].cpu()
            scores = scores[:, : self.candidates]
            ranks[block] = (scores >= true).sum(dim=1).cpu() * inside[block]
            among[block] = (true[:, 0] - scores.logsumexp(dim=1)).cpu()
        # of the best constant prediction: the frequencies
        constants = self.constant[classes]
        candidates = self.constant[: self.candidates][self.known]
        constants_among = constants - candidates.logsumexp(dim=0)
        constant_ranks = ranks_by_frequency(targets, self.known)
        metrics: dict[str, dict[str, float]] = {}
        for name, part in parts.items():
            found = inside[part]
            # of the layer and of the constant, by the name of their perplexity
            likelihoods: dict[str, tuple[Tensor, Tensor]] = {}
            if self._compares:
                pair = (among[part][found], constants_among[part][found])
                likelihoods["perplexity"] = pair
            if self.is_closed:
                pair = (overall[part], constants[part])
                likelihoods["vocabulary_perplexity"] = pair
            if self._begins_word is not None:
                # a word has the likelihood of all its units together
                words = max(1, int(self._begins_word[ids[part]].sum()))
                units = len(ids[part]) / words
                pair = (units * overall[part], units * constants[part])
                likelihoods["word_perplexity"] = pair
            metrics[name] = retrieval(ranks[part])
            metrics[name] |= constant_retrieval(constant_ranks[part])
            for metric, (own, constant) in likelihoods.items():
                metrics[name][metric] = perplexity(own)
                metrics[name][f"constant_{metric}"] = perplexity(constant)
        return metrics
