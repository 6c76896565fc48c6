"""Ranks of words by a language model of subwords: how many candidates are more probable than the true word.

The probability of a word is that of its units, one after the other; in the forward direction also that the next unit
begins another word, since a longer word may begin with the same units. That a unit can only make a word less probable
bounds the search: units are read, the most probable first, as long as they are more probable than the whole true word.
Letters: N places in the text, C units.
"""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from elmoc.encoders import EncoderState
from elmoc.encoders.bidirectional import DirectionEncoder
from pretrain.execution.device import Execution
from pretrain.output_layers.softmax import SoftmaxOutput
from pretrain.word_accuracy.trie import WordTrie


class Reading(NamedTuple):
    """What a direction knows after the units that it has read, at N places."""

    log_probabilities: Tensor
    """float32 [N, C]: of the next unit"""
    state: EncoderState

    def at(self, places: np.ndarray) -> "Reading":
        """The same at some of the places."""
        return Reading(self.log_probabilities[torch.from_numpy(places)], state_at(self.state, places))


def state_at(state: EncoderState, places: np.ndarray) -> EncoderState:
    """The state of some rows of a batch."""
    return state.map(lambda tensor: tensor[torch.from_numpy(places).to(tensor.device)])


class UnitModel:
    """One direction of a language model of units.

    Args:
        encoder: of the direction.
        layer: its softmax over all units.
        vectors: float32 [C, E], what the encoder reads of each unit.
        execution: where these are, and how they compute.
    """

    def __init__(self, encoder: DirectionEncoder, layer: SoftmaxOutput, vectors: Tensor, execution: Execution) -> None:
        self._encoder, self._layer = encoder, layer
        self._vectors, self._execution = vectors, execution

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self._execution.device

    @torch.no_grad()
    def read(self, units: np.ndarray, state: EncoderState | None) -> Reading:
        """Read one unit at each place, int64 [N], in the states that were before it."""
        with self._execution.autocast():
            output = self._encoder(self._vectors[torch.from_numpy(units)].unsqueeze(1), state)
            predicted = self._layer.predict(output.layer_states[-1][:, 0])
        return Reading(self._layer.log_probabilities(predicted).float(), output.state)


@dataclass(frozen=True)
class Prefixes:
    """Beginnings of words that may be read, arrays [n].

    place    of which place in the text
    node     of the trie, after the last unit
    unit     the last one, which is still to be read
    score    log-probability of all units
    parent   the row of the state before it
    """

    place: np.ndarray
    node: np.ndarray
    unit: np.ndarray
    score: np.ndarray
    parent: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    def at(self, rows: np.ndarray) -> "Prefixes":
        """Some of them, by their numbers or a mask."""
        return Prefixes(*(getattr(self, field.name)[rows] for field in fields(self)))

    def plus(self, other: "Prefixes") -> "Prefixes":
        """These and the others."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Prefixes(*(np.concatenate(pair) for pair in pairs))


class WordRanker:
    """Ranks candidate words.

    Args:
        model: of the direction.
        paths: the units of each candidate, in the direction's reading order.
        is_over: as in `WordTrie`.
        begins_word: bool [C], the units that begin a word.
        most: ranks up to this are told apart.
    """

    def __init__(
        self, model: UnitModel, paths: list[list[int]], is_over: np.ndarray, begins_word: np.ndarray, *, most: int
    ) -> None:
        self._model, self._paths, self._most = model, paths, most
        self._trie = WordTrie(paths, is_over)
        self._begins_word = torch.from_numpy(begins_word).to(model.device, torch.float32)

    def ranks(self, reading: Reading, words: np.ndarray) -> np.ndarray:
        """int64 [N]: the rank of the true word [N] of each place among the candidates, 1 the best; 0 past `most`.

        Exact up to rounding; of candidates that are as probable the true word counts as the last.
        """
        trie, true = self._trie, self._trie.ends[words]
        least = self.scores(reading, words)
        better = np.zeros(len(words), dtype=np.int64)
        place, node, score = np.arange(len(words)), np.zeros_like(better), np.zeros(len(words))
        queue: Prefixes | None = None
        states: EncoderState | None = None
        while len(place):
            longer = np.flatnonzero(trie.is_word[node] & ~trie.is_over[node] & (node != true[place]))
            over = score[longer] + self._ends(reading.at(longer))
            better += np.bincount(place[longer[over >= least[place[longer]]]], minlength=len(words))
            rows, units, nodes = trie.children(node)
            reached = score[rows] + self._log_probabilities(reading, rows, units)
            near = reached >= least[place[rows]]
            before = 0 if states is None else len(states.layers[0][0])
            found = Prefixes(place[rows], nodes, units, reached, before + rows).at(near)
            is_over = trie.is_over[found.node]
            better += np.bincount(found.place[is_over & (found.node != true[found.place])], minlength=len(words))
            states = reading.state if states is None else joined(states, reading.state)
            queue = found.at(~is_over) if queue is None else queue.plus(found.at(~is_over))
            queue = queue.at(better[queue.place] < self._most)
            chosen = self._next(queue, better)
            taken, queue = queue.at(chosen), queue.at(~chosen)
            if len(taken):
                reading = self._model.read(taken.unit, state_at(states, taken.parent))
            place, node, score = taken.place, taken.node, taken.score
            kept, parent = np.unique(queue.parent, return_inverse=True)
            states = state_at(states, kept)
            queue = replace(queue, parent=parent)
        return np.where(better < self._most, better + 1, 0)

    def scores(self, reading: Reading, words: np.ndarray) -> np.ndarray:
        """float64 [N]: the log-probability of a word [N] at each place."""
        paths = [self._paths[word] for word in words.tolist()]
        lengths = np.array([len(path) for path in paths])
        open_at_end = ~self._trie.is_over[self._trie.ends[words]]
        scores = np.zeros(len(words))
        here = np.arange(len(words))
        for step in range(int(lengths.max(initial=0)) + 1):
            over = lengths[here] == step
            scores[here[over]] += self._ends(reading.at(np.flatnonzero(over)))
            reading, here = reading.at(np.flatnonzero(~over)), here[~over]
            units = np.array([paths[place][step] for place in here.tolist()], dtype=np.int64)
            scores[here] += self._log_probabilities(reading, np.arange(len(here)), units)
            more = (lengths[here] > step + 1) | open_at_end[here]
            here = here[more]
            if not len(here):
                break
            reading = self._model.read(units[more], state_at(reading.state, np.flatnonzero(more)))
        return scores

    def _next(self, queue: Prefixes, better: np.ndarray) -> np.ndarray:
        """Which prefixes to read next, bool [n]: of each place the most probable, as many as it may still need."""
        order = np.lexsort((-queue.score, queue.place))
        places = queue.place[order]
        first = np.searchsorted(places, places)
        chosen = np.zeros(len(queue), dtype=bool)
        chosen[order] = np.arange(len(queue)) - first < self._most - better[places]
        return chosen

    def _ends(self, reading: Reading) -> np.ndarray:
        """float64 [N]: the log-probability that the next unit begins a word."""
        probabilities = reading.log_probabilities.exp()
        return probabilities.mv(self._begins_word).double().log().cpu().numpy()

    @staticmethod
    def _log_probabilities(reading: Reading, rows: np.ndarray, units: np.ndarray) -> np.ndarray:
        """float64 [n]: of units [n] at rows [n]."""
        return reading.log_probabilities[torch.from_numpy(rows), torch.from_numpy(units)].double().cpu().numpy()


def joined(first: EncoderState, second: EncoderState) -> EncoderState:
    """The rows of two states of one encoder, one behind the other."""
    layers = zip(first.layers, second.layers, strict=True)
    return EncoderState(tuple(tuple(torch.cat(pair) for pair in zip(*layer, strict=True)) for layer in layers))
