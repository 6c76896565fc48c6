"""Candidates: the types of the lexicon among which an output layer tells the targets of a window.

They are the distinct types of the window's targets, of all the streams that train a direction, and types that are drawn
besides. For a sampled softmax they are the types drawn, and for each target its own type, too. Every process finds the
same ones without a message, since every process cuts the same streams.
Letters: B streams, T time, V lexicon size, K types, C classes, U candidates.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from elmoc.encoders import DIRECTIONS
from pretrain.data.windows import CandidateIds, Position, Window
from pretrain.output_layers import LEAST_COUNT, CandidateSettings, SampleSettings, class_counts, log_frequencies


class Draws:
    """Draws of types with replacement, the same for the same seed, direction and window.

    Args:
        chances: float64 [C], of each type; they sum to 1.
        count: draws for a window.
        seed: of the run.
    """

    def __init__(self, chances: np.ndarray, count: int, seed: int) -> None:
        self.count = count
        self._seed = seed
        self._cumulative = np.cumsum(chances) if count else np.empty(0)

    def of(self, position: Position, direction: str) -> np.ndarray:
        """uint32 [count]."""
        place = (self._seed, position.epoch, position.shard, position.window, DIRECTIONS.index(direction))
        points = np.random.default_rng(place).random(self.count) * self._cumulative[-1]
        drawn = np.searchsorted(self._cumulative, points, side="right").clip(max=len(self._cumulative) - 1)
        return drawn.astype(np.uint32)


class CandidateSampler:
    """Finds the candidates of windows, and says how likely each type is to be one.

    Args:
        counts: int64 [V], occurrences of each type in the training text.
        read: float64 [V], how often an epoch reads each type, where that is something else.
        targets: of a window and direction, over all its streams.
        settings: what is drawn besides.
        seed: of the run.

    log_frequency   float32 [V]: log of the share of each type in the training text
    log_chance      float32 [V]: log Q_u, how likely it is that a type is a candidate of a target that is another type:
                    Q_u = 1 − (1 − p_u)^(N − 1) · (1 − r_u)^M, for its share p_u of what is read, N − 1 other targets,
                    and M draws with chance r_u
    most            the most candidates that a window can have
    expected        about as many as a window has
    """

    def __init__(
        self,
        counts: np.ndarray,
        *,
        targets: int,
        settings: CandidateSettings,
        seed: int,
        read: np.ndarray | None = None,
    ) -> None:
        read = counts.astype(np.float64) if read is None else read
        self.most = min(targets + settings.extra, len(counts))
        weights = read**settings.extra_power * (read > 0)
        drawn = weights / weights.sum()  # r_u
        share = np.where(read > 0, read, LEAST_COUNT) / read.sum()  # p_u; what is not read has one, too, for its log
        # log of the chance to be left out; of a window with one target and nothing drawn, the one candidate is certain
        left_out = max(1, targets - 1) * np.log1p(-share) + settings.extra * np.log1p(-drawn)
        self.log_frequency = log_frequencies(counts).astype(np.float32)
        self.log_chance = np.log(-np.expm1(left_out)).astype(np.float32)
        self.expected = round(float(np.exp(self.log_chance, dtype=np.float64).sum()))
        self._draws = Draws(drawn, settings.extra, seed)

    def class_of(self, ids: np.ndarray) -> np.ndarray:
        """What stands for types among candidates: themselves."""
        return ids

    def candidates(self, ids: np.ndarray, position: Position, direction: str) -> CandidateIds:
        """The distinct types of targets `ids` of all streams, and those drawn for a window, ascending."""
        if self._draws.count:
            ids = np.concatenate([ids.ravel(), self._draws.of(position, direction)])
        distinct = np.unique(ids)
        return CandidateIds(distinct, len(distinct))


class LogUniformSampler:
    """Draws the candidates of windows with chances that fall with the rank r: log((r + 2)/(r + 1)) / log(C + 1).

    So did the original ELMo's sampled softmax. Of so many draws with replacement that the expected number of distinct
    types is what is asked for, the distinct ones are taken, each of which is there with the chance
    1 − (1 − chance)^draws. Of half of the classes or more, all of them are candidates of every window.

    Args:
        counts: int64 [V], occurrences of each type in the training text.
        targets: of a window and direction, over all its streams.
        settings: what is drawn.
        seed: of the run.

    log_frequency, log_chance, most, expected  as of `CandidateSampler`, of the C classes
    """

    def __init__(self, counts: np.ndarray, *, targets: int, settings: SampleSettings, seed: int) -> None:
        classes = class_counts(counts, settings.types)
        self.classes = len(classes)
        ranks = np.arange(self.classes)
        chances = np.log((ranks + 2) / (ranks + 1)) / np.log(self.classes + 1)
        everything = 2 * settings.samples >= self.classes
        draws = 0 if everything else draws_for(chances, settings.samples)
        chance = np.zeros(self.classes) if everything else np.log(-np.expm1(draws * np.log1p(-chances)))
        self.log_frequency = log_frequencies(classes).astype(np.float32)
        self.log_chance = chance.astype(np.float32)
        self.expected = self.classes if everything else settings.samples
        self.most = self.classes if everything else min(draws + targets, self.classes)
        self._draws = Draws(chances, draws, seed)

    def class_of(self, ids: np.ndarray) -> np.ndarray:
        """The class of each type: its id, or that of `<unk>`."""
        return np.minimum(ids, self.classes - 1)

    def candidates(self, ids: np.ndarray, position: Position, direction: str) -> CandidateIds:
        """The distinct types drawn for a window, and then those of targets `ids` of all streams that are not drawn."""
        if not self._draws.count:
            return CandidateIds(np.arange(self.classes, dtype=np.uint32), self.classes)
        drawn = np.unique(self._draws.of(position, direction))
        others = np.setdiff1d(self.class_of(ids).astype(np.uint32), drawn)
        return CandidateIds(np.concatenate([drawn, others]), len(drawn))


def draws_for(chances: np.ndarray, distinct: int) -> int:
    """The least number of draws with replacement of which the expected number of distinct types is `distinct`."""
    left_out = np.log1p(-chances)

    def expected(draws: int) -> float:
        return float(-np.expm1(draws * left_out).sum())

    most = distinct
    while expected(most) < distinct:
        most *= 2
    return bisect_left(range(most), float(distinct), key=expected)


def with_candidates(
    windows: Iterator[Window], sampler: CandidateSampler | LogUniformSampler, position: Position, own: slice
) -> Iterator[Window]:
    """Windows of all streams from `position` on as those of `own` streams, with candidates for the targets of all."""
    for window in windows:
        candidates = {
            direction: sampler.candidates(ids[:, 1:], position, direction) for direction, ids in window.ids.items()
        }
        position = window.next
        yield replace(window, ids={name: ids[own] for name, ids in window.ids.items()}, candidates=candidates)
