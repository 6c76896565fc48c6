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
    OutputLayer,
    OutputLayerSettings,
    class_counts,
    log_frequencies,
)
from pretrain.output_layers.retrieval import perplexity, ranks_by_frequency, retrieval

# Log-probabilities that are computed at once in evaluation.
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

    def classes_of(self, corpus: Corpus) -> int:
        """C: K, and one more for `<unk>` where there are rarer types."""
        return len(class_counts(corpus.counts, self.types))

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """The lexicon that its classes are the types of, and how many they are."""
        types = min(self.types or corpus.types, corpus.types)  # K
        return {
            "kind": self.kind,
            "lexicon": corpus.lexicon_fingerprint,
            "types": types,
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
        types = min(self.types or corpus.types, corpus.types)
        return SoftmaxScorer(
            class_counts(corpus.counts, self.types),
            candidates=min(asked, types),
            compares=asked <= types,
            begins_word=begins_word(corpus.lexicon) if corpus.record.subwords else None,
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
        """From top layer states [N, P] and a class of each [N], log-probabilities,
        float32.

        Returns them for the first classes, [N, candidates], and for the given classes,
        [N].
        """

    def scores_of_a_word(self, candidates: int) -> int:
        """How many numbers `scored` makes of each word."""
        return self.classes


class SoftmaxScorer:
    """Ranks and perplexity by log-probabilities.

    Candidates are the most frequent types, as with other output layers, as far as they
    are among the K. `perplexity` takes targets among the candidates, and these alone as
    classes, so that output layers compare on one corpus; where K is smaller and other
    layers have more candidates, it would not compare, and is left out.
    `vocabulary_perplexity` takes all targets over all classes, `<unk>` one of them, and
    `word_perplexity`, where types are subwords, words with all their units.

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

    def __init__(
        self,
        counts: np.ndarray,
        *,
        candidates: int,
        compares: bool = True,
        known: Tensor | None = None,
        begins_word: np.ndarray | None = None,
    ) -> None:
        self.candidates = candidates
        self._compares = compares
        self._known = (
            torch.ones(candidates, dtype=torch.bool) if known is None else known
        )
        self._constant = torch.from_numpy(log_frequencies(counts))  # float64 [C]
        self._begins_word = begins_word

    def scored(
        self, layer: OutputLayer, predictions: Tensor, classes: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """See `SoftmaxOutput.scored`; no log-probabilities of classes where the
        vocabulary is open.
        """
        assert isinstance(layer, SoftmaxOutput)
        return layer.scored(
            predictions, classes.to(predictions.device), self.candidates
        )

    def score(
        self,
        layer: OutputLayer,
        predictions: Tensor,
        ids: np.ndarray,
        parts: Mapping[str, slice],
    ) -> dict[str, dict[str, float]]:
        """See `Scorer`."""
        targets = torch.from_numpy(ids.astype(np.int64)).clamp(
            max=len(self._constant) - 1
        )  # [N], `<unk>` is the last
        columns = targets.clamp(max=self.candidates - 1)
        inside = (targets < self.candidates) & self._known[columns]
        ranks = torch.zeros(len(targets), dtype=torch.int64)
        among, overall = torch.zeros(2, len(targets))
        is_open = not isinstance(layer, SoftmaxOutput)
        of_a_word = (
            layer.scores_of_a_word(self.candidates)
            if isinstance(layer, SoftmaxOutput)
            else self.candidates
        )
        for block in torch.arange(len(targets)).split(max(1, SCORES // of_a_word)):
            scores, true = self.scored(layer, predictions[block], targets[block])
            if true is not None:
                overall[block] = true.float().cpu()
            # a candidate's own score: computed apart, it would differ by rounding
            own = scores.gather(1, columns[block].to(scores.device).unsqueeze(1))
            ranks[block] = (scores >= own).sum(dim=1).cpu() * inside[block]
            among[block] = (own[:, 0] - scores.logsumexp(dim=1)).float().cpu()
        constants = self._constant[targets]
        constants_among = constants - self._constant[: self.candidates][
            self._known
        ].logsumexp(dim=0)
        constant_ranks = ranks_by_frequency(targets, self._known)
        values = {}
        for name, part in parts.items():
            found = inside[part]
            values[name] = retrieval(ranks[part])
            values[name] |= {
                f"constant_{metric}": value
                for metric, value in retrieval(constant_ranks[part]).items()
            }
            # of the layer and of the constant, by the name of their perplexity
            likelihoods = {}
            if self._compares:
                likelihoods["perplexity"] = (
                    among[part][found],
                    constants_among[part][found],
                )
            if not is_open:
                likelihoods["vocabulary_perplexity"] = overall[part], constants[part]
            if self._begins_word is not None:  # of all units of a word together
                units = len(ids[part]) / max(1, int(self._begins_word[ids[part]].sum()))
                likelihoods["word_perplexity"] = (
                    overall[part] * units,
                    constants[part] * units,
                )
            for metric, (own_likelihoods, constant) in likelihoods.items():
                values[name] |= {
                    metric: perplexity(own_likelihoods),
                    f"constant_{metric}": perplexity(constant),
                }
        return values
