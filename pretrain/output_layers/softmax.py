"""Softmax output layers: a distribution over a closed vocabulary, the first K types of the lexicon and `<unk>`.

Both directions share one layer, as ELMo's do. Letters: N targets, P projection, V lexicon size, K types, C classes.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from elmoc.corpus import Corpus
from elmoc.settings import setting
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import OutputLayer, OutputLayerSettings, class_counts, log_frequencies
from pretrain.output_layers.retrieval import perplexity, ranks_by_frequency, retrieval

SCORES = 2**24
"""Log-probabilities that are computed at once in evaluation."""


@dataclass(frozen=True)
class SoftmaxSettings(OutputLayerSettings):
    """What all kinds of softmax can be told.

    types: K, the most frequent types of the lexicon, which are told apart; 0: all. Where the lexicon has more, there is
    one more class, `<unk>`, for rarer words.
    """

    reads_target_vectors: ClassVar[bool] = False
    shared: ClassVar[bool] = True

    types: int = setting(0, least=0, most=2**31 - 2)

    def types_of(self, corpus: Corpus) -> int:
        """K."""
        return min(self.types, corpus.types) if self.types else corpus.types

    def classes_of(self, corpus: Corpus) -> int:
        """C: K, and one more for `<unk>` where there are rarer types."""
        return len(class_counts(corpus.counts, self.types))

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """The lexicon that its classes are the types of, and how many they are."""
        return {"kind": self.kind, "lexicon": corpus.lexicon_fingerprint, "types": self.types_of(corpus)}

    def scorer(
        self, *, corpus: Corpus, targets: LexiconTable, candidates: int, device: torch.device
    ) -> "SoftmaxScorer":
        return self.scorer_of(corpus, candidates)

    def scorer_of(self, corpus: Corpus, candidates: int, *, begins_word: np.ndarray | None = None) -> "SoftmaxScorer":
        """The scorer of a corpus; see there for `begins_word`."""
        counts = class_counts(corpus.counts, self.types)
        asked, types = min(candidates, corpus.types), self.types_of(corpus)
        known = min(asked, types)
        return SoftmaxScorer(scored, counts, candidates=known, compares=known == asked, begins_word=begins_word)


class SoftmaxOutput(OutputLayer):
    """log P(class | state), of the classes 0 … C − 1.

    Args:
        types: K.
        classes: C, which is K or K + 1.
    """

    def __init__(self, types: int, classes: int) -> None:
        super().__init__()
        self.types = types
        self.classes = classes

    def class_of(self, ids: Tensor) -> Tensor:
        """The class of each type: its id, or K for a rarer one."""
        return ids.clamp(max=self.classes - 1)

    def predict(self, states: Tensor) -> Tensor:
        """The top layer states themselves, float32 [..., P]."""
        return states.float()

    @abstractmethod
    def log_probabilities(self, states: Tensor) -> Tensor:
        """float32 [N, C], from top layer states [N, P]."""

    def scored(self, states: Tensor, classes: Tensor, candidates: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the first classes, float32 [N, candidates], and of one class of each state [N, P], [N].

        A layer that needs fewer than all for these computes fewer.
        """
        scores = self.log_probabilities(states)
        return scores[:, :candidates], scores.gather(1, classes.unsqueeze(1))[:, 0]

    def scores_of_a_word(self, candidates: int) -> int:
        """How many numbers `scored` makes of each word."""
        return self.classes


def scored(layer: OutputLayer, predictions: Tensor, classes: Tensor, candidates: int) -> tuple[Tensor, Tensor]:
    """See `SoftmaxOutput.scored`."""
    assert isinstance(layer, SoftmaxOutput)
    return layer.scored(predictions, classes.to(predictions.device), candidates)


class SoftmaxScorer:
    """Ranks and perplexity by log-probabilities.

    Candidates are the most frequent types, as with other output layers, as far as they are among the K. `perplexity` is
    that of the targets among the candidates, and of these alone, so that output layers compare on one corpus; where K
    is smaller and other layers have more candidates, it would not compare, and is left out. `vocabulary_perplexity` is
    that of all targets over all classes, `<unk>` one of them, and `word_perplexity`, where types are subwords, that of
    words, which are all their units.

    Args:
        scores: from a layer, predictions [n, D], a class for each [n], and how many candidates there are, the
            log-probabilities of these [n, candidates], and of the classes [n]; with `known` all are among candidates.
        counts: [C], occurrences of each class in the training text.
        candidates: how many there are.
        compares: whether these are all candidates that other output layers have; without, `perplexity` is left out.
        known: bool [candidates], on the CPU: those that can be predicted at all.
        begins_word: bool [V], where types are subwords: whether a word, or the boundary of a sentence, begins with it.
    """

    def __init__(
        self,
        scores: Callable[[OutputLayer, Tensor, Tensor, int], tuple[Tensor, Tensor]],
        counts: np.ndarray,
        *,
        candidates: int,
        compares: bool = True,
        known: Tensor | None = None,
        begins_word: np.ndarray | None = None,
    ) -> None:
        self._scores = scores
        self._candidates = candidates
        self._compares = compares
        self._columns = len(counts) if known is None else candidates
        self._whole = known is None
        self._known = torch.ones(candidates, dtype=torch.bool) if known is None else known
        self._constant = torch.from_numpy(log_frequencies(counts))  # float64 [C]
        self._begins_word = begins_word

    def score(
        self, layer: OutputLayer, predictions: Tensor, ids: np.ndarray, parts: Mapping[str, slice]
    ) -> dict[str, dict[str, float]]:
        """See `Scorer`."""
        targets = torch.from_numpy(ids.astype(np.int64)).clamp(max=len(self._constant) - 1)  # [N], `<unk>` is the last
        columns = targets.clamp(max=self._candidates - 1)
        inside = (targets < self._candidates) & self._known[columns]
        columns = targets.clamp(max=self._columns - 1)
        ranks = torch.zeros(len(targets), dtype=torch.int64)
        among, overall = torch.zeros(2, len(targets))
        of_a_word = self._columns
        if isinstance(layer, SoftmaxOutput):
            of_a_word = layer.scores_of_a_word(self._candidates)
        for block in torch.arange(len(targets)).split(max(1, SCORES // of_a_word)):
            scores, true = self._scores(layer, predictions[block], columns[block], self._candidates)
            overall[block] = true.float().cpu()
            # a candidate's own score, of which rounding makes another one where it is computed apart
            own = scores.gather(1, columns[block].clamp(max=self._candidates - 1).to(scores.device).unsqueeze(1))
            ranks[block] = (scores >= own).sum(dim=1).cpu() * inside[block]
            among[block] = (own[:, 0] - scores.logsumexp(dim=1)).float().cpu()
        constants = self._constant[targets]
        constants_among = constants - self._constant[: self._candidates][self._known].logsumexp(dim=0)
        constant_ranks = ranks_by_frequency(targets, self._known)
        values = {}
        for name, part in parts.items():
            own = inside[part]
            values[name] = {
                **retrieval(ranks[part]),
                **{f"constant_{metric}": value for metric, value in retrieval(constant_ranks[part]).items()},
            }
            if self._compares:
                values[name] |= {
                    "perplexity": perplexity(among[part][own]),
                    "constant_perplexity": perplexity(constants_among[part][own]),
                }
            if self._whole:
                values[name] |= {
                    "vocabulary_perplexity": perplexity(overall[part]),
                    "constant_vocabulary_perplexity": perplexity(constants[part]),
                }
            if self._begins_word is not None:  # that of all units of a word together
                units_of_a_word = len(ids[part]) / max(1, int(self._begins_word[ids[part]].sum()))
                values[name] |= {
                    "word_perplexity": perplexity(overall[part] * units_of_a_word),
                    "constant_word_perplexity": perplexity(constants[part] * units_of_a_word),
                }
        return values
