"""Held-out word accuracy: text is read unit by unit, and before each word the candidates are ranked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from elmoc.corpus import Corpus
from elmoc.encoders import EncoderState
from elmoc.word_vectors.subwords import Subwords, begins_word
from pretrain.data.sources import TrainingData
from pretrain.evaluation import averaged, slices_of_sources, windows_of_sources
from pretrain.output_layers.retrieval import retrieval
from pretrain.word_accuracy.ranks import UnitModel, WordRanker, state_at

MOST = 10
"""Ranks up to this are told apart: accuracy@10 needs no more."""


class HeldOutWords(NamedTuple):
    """The held-out words that other models of the same words are scored by.

    ids: for each direction and source, ids [B, n + 1] in reading order, of which the first of each stream is read only.
    """

    corpus: Corpus
    ids: dict[str, dict[str, np.ndarray]]

    @classmethod
    def of(cls, data: TrainingData, words: int) -> "HeldOutWords":
        """About `words` held-out words of the corpus of `data`, an equal number of each source."""
        ids: dict[str, dict[str, np.ndarray]] = {direction: {} for direction in data.directions}
        for source, windows in windows_of_sources(data, words):
            read = list(windows)
            for direction in data.directions:
                first, *later = (window[direction] for window in read)
                ids[direction][source] = np.concatenate([first, *(window[:, 1:] for window in later)], axis=1)
        return cls(data.corpus, ids)


def word_metrics(
    models: dict[str, UnitModel],
    subwords: Subwords,
    held_out: HeldOutWords,
    *,
    candidates: int,
    progress: Callable[[int], object] = lambda words: None,
) -> dict[str, float]:
    """Accuracy@1 and @10 of whole words among the `candidates` most frequent types of their corpus.

    Args:
        models: of each direction.
        subwords: the units that these read.
        held_out: the words to find.
        candidates: a word that is none of them counts as not found.
        progress: is told how many words were looked for since it was told before.

    Returns:
        `accuracy_at_1`, `accuracy_at_10` and `outside`, the share of words that are no candidates, by the names that
        `evaluate` gives them; and those of the ranking by frequency alone, named `constant_…`.
    """
    corpus = held_out.corpus
    candidates = min(candidates, corpus.types)
    read = [ids.ravel() for text in held_out.ids.values() for ids in text.values()]
    types = np.unique(np.concatenate([np.arange(candidates), *read])).tolist()
    units_of = dict(zip(types, subwords.rows_of_types(corpus, types), strict=True))
    marks, begins = np.isin(np.arange(candidates), list(corpus.marks.values())), begins_word(subwords.units)
    scores = {}
    for direction, model in models.items():
        text, is_backward = held_out.ids[direction], direction == "backward"
        paths = {row: units[::-1] if is_backward else units for row, units in units_of.items()}
        ranker = WordRanker(model, [paths[row] for row in range(candidates)], marks | is_backward, begins, most=MOST)
        ranks, true = [], []
        for ids in text.values():
            ranks.append(ranks_in_text(model, ranker, ids, paths, candidates=candidates, progress=progress))
            true.append(ids[:, 1:].ravel())
        parts = slices_of_sources(list(text), [len(each) for each in true])
        found, words = np.concatenate(ranks), np.concatenate(true)
        scores[direction] = {name: accuracies(found[part], words[part], candidates) for name, part in parts.items()}
    return averaged(scores)


def ranks_in_text(
    model: UnitModel,
    ranker: WordRanker,
    ids: np.ndarray,
    paths: dict[int, list[int]],
    *,
    candidates: int,
    progress: Callable[[int], object],
) -> np.ndarray:
    """int64 [B · n]: the ranks of the words [B, n + 1] after the first of each stream; 0 as `WordRanker.ranks` has it.

    A unit of each stream is read at a time, and words are ranked where one ends.
    """
    ranks = np.zeros(ids.shape, dtype=np.int64)
    streams = [stream_of([paths[word] for word in row]) for row in ids.tolist()]
    here = np.arange(len(streams))
    state: EncoderState | None = None
    for step in range(max(len(stream.units) for stream in streams)):
        goes_on = np.array([step < len(streams[row].units) for row in here.tolist()])
        state = None if state is None else state_at(state, np.flatnonzero(goes_on))
        here = here[goes_on]
        reading = model.read(np.array([streams[row].units[step] for row in here.tolist()]), state)
        state = reading.state
        next_word = np.array([streams[row].next_word[step] for row in here.tolist()])
        progress(int((next_word > 0).sum()))
        true = ids[here, next_word]
        due = np.flatnonzero((next_word > 0) & (true < candidates))
        if len(due):
            ranks[here[due], next_word[due]] = ranker.ranks(reading.at(due), true[due])
    return ranks[:, 1:].ravel()


class Stream(NamedTuple):
    """Words as units."""

    units: list[int]
    next_word: list[int]
    """For each unit the place of the word that comes next, where it ends one that is not the last; else 0."""


def stream_of(words: Sequence[list[int]]) -> Stream:
    """Words by their units, in reading order."""
    units = [unit for word in words for unit in word]
    next_word = np.zeros(len(units), dtype=np.int64)
    next_word[np.cumsum([len(word) for word in words[:-1]]) - 1] = np.arange(1, len(words))
    return Stream(units, next_word.tolist())


def accuracies(ranks: np.ndarray, words: np.ndarray, candidates: int) -> dict[str, float]:
    """The metrics of some words with these ranks; by frequency a word's rank is its id + 1."""
    by_frequency = np.where(words < candidates, words.astype(np.int64) + 1, 0)
    found, constant = (retrieval(torch.from_numpy(each)) for each in (ranks, by_frequency))
    names = ("accuracy_at_1", "accuracy_at_10")
    return {
        **{name: found[name] for name in names},
        **{f"constant_{name}": constant[name] for name in names},
        "outside": constant["outside"],
    }
