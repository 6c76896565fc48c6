"""Candidates: from which types of the lexicon does an output layer tell the targets of
a window?

For contrastive losses they are the types of the window's targets, of all the streams
that train a direction. For a sampled softmax they are types that are drawn, and for
each target its own type. Every process cuts the same streams, so it finds the same
candidates without a message.
Letters: B streams, T time, V lexicon size, C classes, U candidates, N targets, M draws.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import astuple

import numpy as np

from elmoc.encoders import DIRECTIONS
from pretrain.data.windows import CandidateIds, Position
from pretrain.output_layers import (
    SampleSettings,
    class_counts,
    shares,
)


class CandidateSampler(ABC):
    """Finds the candidates of windows, and says how likely each type is to be one.

    log_frequency: float32 [C], the log of the share of each class in the text read.
    log_chance: float32 [C], log Q_u, the log of the chance that a class is a candidate
        of a target of another class.

    Args:
        counts: [C], how often an epoch reads each class.
    """

    log_chance: np.ndarray

    def __init__(self, counts: np.ndarray) -> None:
        self.classes = len(counts)
        self.log_frequency = np.log(shares(counts)).astype(np.float32)

    def class_of(self, ids: np.ndarray) -> np.ndarray:
        """The class of each type: its id, or the last class, `<unk>`."""
        return np.minimum(ids, self.classes - 1)

    @abstractmethod
    def candidates(
        self, ids: np.ndarray, position: Position, direction: str
    ) -> CandidateIds:
        """The candidates of a window.

        Args:
            ids: uint32 [B, T], the targets of all streams.
            position: of the window, from which it draws what is random.
            direction: of the targets.
        """


class TargetSampler(CandidateSampler):
    """The candidates of every target are the types of all targets.

    Q_u = 1 − (1 − p_u)^(N − 1) for the share p_u of a type in the text read, and N − 1
    other targets.

    Args:
        counts: [V], how often an epoch reads each type.
        targets: N, the targets of a window and direction, over all its streams.
    """

    def __init__(self, counts: np.ndarray, *, targets: int) -> None:
        super().__init__(counts)
        share = shares(counts)  # p_u
        # log of the chance that no other target is of the type; a window with a single
        # target would have a chance of 0, and its log no number
        left_out = max(1, targets - 1) * np.log1p(-share)
        self.log_chance = np.log(-np.expm1(left_out)).astype(np.float32)

    def candidates(
        self, ids: np.ndarray, position: Position, direction: str
    ) -> CandidateIds:
        distinct = np.unique(ids)
        return CandidateIds(distinct, len(distinct))


class LogUniformSampler(CandidateSampler):
    """The candidates of a target are the classes drawn for its window, and its own
    class.

    Chances fall with the rank r: log((r + 2)/(r + 1)) / log(C + 1), as in the original
    ELMo's sampled softmax. The number of draws gives `settings.samples` distinct
    classes on average; a class is among them with the chance 1 − (1 − chance)^draws.
    Where half of the classes or more are asked for, all of them are candidates of every
    window.

    Args:
        counts: [V], how often an epoch reads each type.
        settings: how many types are drawn, and of which.
        seed: of the run.
    """

    def __init__(
        self, counts: np.ndarray, *, settings: SampleSettings, seed: int
    ) -> None:
        super().__init__(class_counts(counts, settings.types))
        self._seed = seed
        ranks = np.arange(self.classes)
        chances = np.log((ranks + 2) / (ranks + 1)) / np.log(self.classes + 1)
        self._cumulative = np.cumsum(chances)
        # draws with replacement would need a great number to find half of the classes
        self.everything = 2 * settings.samples >= self.classes
        chance = np.zeros(self.classes)
        if not self.everything:
            self._draws = draws_for(chances, settings.samples)
            chance = np.log(-np.expm1(self._draws * np.log1p(-chances)))
        self.log_chance = chance.astype(np.float32)

    def candidates(
        self, ids: np.ndarray, position: Position, direction: str
    ) -> CandidateIds:
        """The distinct classes drawn for a window, the same for the same seed and
        position, and behind them the targets' classes that are not drawn.
        """
        if self.everything:
            return CandidateIds(np.arange(self.classes, dtype=np.uint32), self.classes)
        seed = (self._seed, *astuple(position), DIRECTIONS.index(direction))
        points = np.random.default_rng(seed).random(self._draws) * self._cumulative[-1]
        places = np.searchsorted(self._cumulative, points, side="right")
        # rounding may take the last point to the end of the last class
        drawn = np.unique(self.class_of(places).astype(np.uint32))
        others = np.setdiff1d(self.class_of(ids).astype(np.uint32), drawn)
        return CandidateIds(np.concatenate([drawn, others]), len(drawn))


def draws_for(chances: np.ndarray, distinct: int) -> int:
    """The least number of draws with replacement that give `distinct` types, as
    expected.

    Args:
        chances: [C], of each type in one draw.
        distinct: how many types are wanted.
    """
    left_out = np.log1p(-chances)
    # far more draws than a lexicon of any size needs for half of its types
    return bisect_left(
        range(2**40),
        float(distinct),
        key=lambda draws: float(-np.expm1(draws * left_out).sum()),
    )
