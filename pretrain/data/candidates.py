"""Candidates: the types of the lexicon among which an output layer tells the targets of a window.

They are the distinct types of the window's targets, of all the streams that train a direction, and types that are drawn
besides. Every process finds the same ones without a message, since every process cuts the same streams.
Letters: B streams, T time, V lexicon size, U candidates.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from elmoc.encoders import DIRECTIONS
from pretrain.data.windows import Position, Window
from pretrain.output_layers import CandidateSettings, log_frequencies


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
        self.settings = settings
        self.seed = seed
        self.most = min(targets + settings.extra, len(counts))
        weights = read**settings.extra_power * (read > 0)
        drawn = weights / weights.sum()  # r_u
        # log of the chance to be left out; of a window with one target and nothing drawn, the one candidate is certain
        left_out = max(1, targets - 1) * np.log1p(-np.exp(log_frequencies(read))) + settings.extra * np.log1p(-drawn)
        self.log_frequency = log_frequencies(counts).astype(np.float32)
        self.log_chance = np.log(-np.expm1(left_out)).astype(np.float32)
        self.expected = round(float(np.exp(self.log_chance, dtype=np.float64).sum()))
        self._cumulative = np.cumsum(drawn) if settings.extra else None

    def candidates(self, ids: np.ndarray, position: Position, direction: str) -> np.ndarray:
        """uint32 [U], ascending: the distinct types of targets `ids` of all streams, and those drawn for a window.

        What is drawn depends on nothing but the seed, the direction, and the position of the window.
        """
        if self._cumulative is None:
            return np.unique(ids)
        place = (self.seed, position.epoch, position.shard, position.window, DIRECTIONS.index(direction))
        points = np.random.default_rng(place).random(self.settings.extra) * self._cumulative[-1]
        drawn = np.searchsorted(self._cumulative, points, side="right").clip(max=len(self._cumulative) - 1)
        return np.unique(np.concatenate([ids.ravel(), drawn.astype(ids.dtype)]))


def with_candidates(
    windows: Iterator[Window], sampler: CandidateSampler, position: Position, own: slice
) -> Iterator[Window]:
    """Windows of all streams from `position` on as those of `own` streams, with candidates for the targets of all."""
    for window in windows:
        candidates = {
            direction: sampler.candidates(ids[:, 1:], position, direction) for direction, ids in window.ids.items()
        }
        position = window.next
        yield replace(window, ids={name: ids[own] for name, ids in window.ids.items()}, candidates=candidates)
