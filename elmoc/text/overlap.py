"""Overlap: which sentences of a text are, or share a long run of words with, sentences of another one.

It keeps the text of a task's parts out of the text that an encoder is trained on, and finds it there. Words are
compared by their letters and digits in lower case and in Unicode's normal form NFC; those without any (punctuation) do
not count. Two sentences overlap when they are equal and have at least five words, or share eight words in a row.
Splitting into words is not undone: `don't` and `do n't` differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

import numpy as np
import xxhash

from elmoc.corpus import BEGIN, END, Corpus
from elmoc.files.checksums import fingerprint

SHORTEST = 5
"""Words of a sentence that is compared as a whole."""
RUN = 8
"""Words in a row that a sentence of that length or more shares with another."""
EXAMPLES = 5
_NOT_COUNTED, _OTHER = 0, 1
"""Instead of the hash of a word: one without letters and digits, and one that no sentence has."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BLOCK_TOKENS = 1 << 17
"""So many numbers of 64 bits fit into a core's cache."""
_FILTER_BITS = 22


class Overlap:
    """Sentences, by hashes of 64 bits; finds those of other text that overlap with one of them.

    Args:
        sentences: each a sequence of words.
    """

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self._hash_of: dict[str, int] = {}
        hashes: list[int] = []
        starts: list[int] = []
        for words in sentences:
            starts.append(len(hashes))
            for word in map(reduced, words):
                if word:
                    if word not in self._hash_of:
                        self._hash_of[word] = max(2, xxhash.xxh3_64_intdigest(word.encode()))
                    hashes.append(self._hash_of[word])
        runs = _Runs(np.array(hashes, dtype=np.uint64), np.array(starts, dtype=np.int64))
        self._known = {length: _HashSet(runs.hashes(length)[0]) for length in range(SHORTEST, RUN + 1)}

    @property
    def fingerprint(self) -> str:
        """What names the sentences, as far as they can overlap."""
        return fingerprint(*(known.sorted.tobytes() for known in self._known.values()))

    def hashes(self, words: Iterable[str]) -> np.ndarray:
        """uint64 [n]: what `find` takes for each word."""
        known = self._hash_of.get
        hashes = [known(word, _OTHER) if word else _NOT_COUNTED for word in map(reduced, words)]
        return np.array(hashes, dtype=np.uint64)

    def find(self, hashes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """bool [S]: whether each sentence of a text overlaps with one of these.

        Args:
            hashes: uint64 [n], of the words of the text.
            starts: int64 [S], where sentences start, in order; the first at 0.
        """
        found = np.zeros(len(starts), dtype=bool)
        ends = np.append(starts[1:], len(hashes))
        first = 0
        while first < len(starts):
            last = max(first + 1, int(np.searchsorted(ends, starts[first] + _BLOCK_TOKENS, side="right")))
            runs = _Runs(hashes[starts[first] : ends[last - 1]], starts[first:last] - starts[first])
            for length, known in self._known.items():
                values, sentences = runs.hashes(length)
                found[first + sentences[known.contains(values)]] = True
            first = last
        return found


class _Runs:
    """Hashes of the runs of words in a block of text; see `Overlap.find`."""

    def __init__(self, hashes: np.ndarray, starts: np.ndarray) -> None:
        counted = hashes != _NOT_COUNTED
        lengths = np.diff(starts, append=len(hashes))
        self._sentences = np.repeat(np.arange(len(starts), dtype=np.int32), lengths)[counted]  # [words]
        self._hashes = hashes[counted]  # [words]
        self._lengths = np.bincount(self._sentences, minlength=len(starts))  # [S]

    def hashes(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """uint64 [R] and the sentence of each, int [R]: runs of `RUN` words, or whole sentences of fewer."""
        if length < RUN:
            sentences = np.flatnonzero(self._lengths == length)
            begins = (np.cumsum(self._lengths) - self._lengths)[sentences]
            return self._combined([self._hashes[begins + place] for place in range(length)]), sentences
        count = len(self._hashes) - length + 1
        if count <= 0:
            return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int32)
        inside = self._sentences[length - 1 :] == self._sentences[:count]
        values = self._combined([self._hashes[place : place + count] for place in range(length)])
        return values[inside], self._sentences[:count][inside]

    @staticmethod
    def _combined(words: Sequence[np.ndarray]) -> np.ndarray:
        """One hash of runs, from the hashes of their first words, second words, and so on."""
        values = words[0].copy()
        for each in words[1:]:
            values *= _MULTIPLIER
            values += each
        return values


class _HashSet:
    """A set of hashes of 64 bits; most of what it does not contain is found out by one look into a small table."""

    def __init__(self, values: np.ndarray) -> None:
        self.sorted = np.unique(values)
        self._may_contain = np.zeros(1 << _FILTER_BITS if len(values) else 1, dtype=bool)
        self._shift = np.uint64(64 - _FILTER_BITS)
        if len(values):
            self._may_contain[self.sorted >> self._shift] = True

    def contains(self, values: np.ndarray) -> np.ndarray:
        """bool [n]"""
        if not len(self.sorted):
            return np.zeros(len(values), dtype=bool)
        found = self._may_contain[values >> self._shift]
        few = values[found]
        places = np.searchsorted(self.sorted, few)
        found[found] = self.sorted[np.minimum(places, len(self.sorted) - 1)] == few
        return found


def reduced(word: str) -> str:
    """The letters and digits of a word in lower case, the same for Unicode's normal forms NFC and NFD."""
    if word in (BEGIN, END):
        return ""
    lowered = normalize("NFC", word.lower())
    return lowered if lowered.isalnum() else "".join(filter(str.isalnum, lowered))


@dataclass
class OverlappingSentences:
    """The sentences of a corpus that overlap with given ones.

    by_source: how many, by the source of their text ("" where it has no name).
    examples: a few of them.
    """

    by_source: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Of all sources together."""
        return sum(self.by_source.values())


def overlapping_sentences(corpus: Corpus, overlap: Overlap) -> OverlappingSentences:
    """The sentences of a corpus, held-out ones included, that `overlap` finds; an `InputError` for one of subwords."""
    corpus.require_words()
    hashes = overlap.hashes(corpus.lexicon)
    if corpus.record.unknown_id is not None:
        hashes[corpus.record.unknown_id] = _OTHER
    found = OverlappingSentences(dict.fromkeys([*corpus.sources, *corpus.held_out_sources], 0))
    for shard in corpus.train + corpus.held_out:
        ids = corpus.read_shard(shard)
        starts = np.flatnonzero(ids == corpus.begin_id)
        overlapping = np.flatnonzero(overlap.find(hashes[ids], starts))
        found.by_source[shard.source] += len(overlapping)
        ends = np.append(starts[1:], len(ids))
        for number in overlapping[: EXAMPLES - len(found.examples)]:
            words = ids[starts[number] + 1 : ends[number] - 1].tolist()
            found.examples.append(" ".join(corpus.lexicon[row] for row in words))
    return found
