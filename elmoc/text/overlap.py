"""Overlap: which sentences of a text are, or share a long run of words with, sentences
of another one.

Words are compared by their letters and digits in lower case and in Unicode's normal
form NFC; those without any do not count. Two sentences overlap when they are equal and
have at least five words, or share eight words in a row.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from unicodedata import normalize

import numpy as np
import xxhash

from elmoc.corpus import BEGIN, END, Corpus
from elmoc.files.checksums import fingerprint

# Words of the shortest sentence that is compared as a whole: shorter ones, such as
# "Yes, I know.", stand in any text.
SHORTEST = 5
# Words in a row that a sentence of that length or more shares with another.
RUN = 8
# In place of a hash: a word without letters and digits, and a word of no sentence.
_NOT_COUNTED = 0
_OTHER = 1
# An odd number without a pattern in its bits (2^64 by the golden ratio): words in
# another order get another hash.
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Overlap:
    """Sentences, by hashes of 64 bits; finds sentences of other text that overlap with
    one of them.

    Args:
        sentences: each a sequence of words.
    """

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self._hash_of = {"": _NOT_COUNTED}
        hashes: list[int] = []
        starts: list[int] = []
        for words in sentences:
            starts.append(len(hashes))
            for word in filter(None, map(reduced, words)):
                # 0 and 1 have a meaning of their own.
                value = max(2, xxhash.xxh3_64_intdigest(word.encode()))
                hashes.append(self._hash_of.setdefault(word, value))
        runs = _runs(np.array(hashes, np.uint64), np.array(starts, np.int64))
        self._known = {length: np.unique(values) for length, values, _ in runs}

    @property
    def fingerprint(self) -> str:
        """What names the sentences, as far as they can overlap."""
        return fingerprint(hashes.tobytes() for hashes in self._known.values())

    def hashes(self, words: Iterable[str]) -> np.ndarray:
        """uint64 [n]: what `find` takes for each word."""
        hashes = [self._hash_of.get(reduced(word), _OTHER) for word in words]
        return np.array(hashes, dtype=np.uint64)

    def find(self, hashes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """bool [S]: whether each sentence of a text overlaps with one of these.

        Args:
            hashes: uint64 [n], of the words of the text.
            starts: int64 [S], where sentences start, in order; the first at 0.
        """
        found = np.zeros(len(starts), dtype=bool)
        for length, values, sentences in _runs(hashes, starts):
            known = self._known[length]
            if len(known):
                # `np.isin` would sort all that is known again in every call.
                nearest = known.take(known.searchsorted(values), mode="clip")
                found[sentences[nearest == values]] = True
        return found


def _runs(
    hashes: np.ndarray, starts: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Whole sentences of fewer than `RUN` words, and the runs of that many words, of a
    text as `find` takes it.

    Yields for each length a hash of each run, uint64 [R], and the sentence that it is
    in, int [R].
    """
    counted = hashes != _NOT_COUNTED
    numbers = np.arange(len(starts), dtype=np.int32)
    sentences = np.repeat(numbers, np.diff(starts, append=len(hashes)))[counted]
    hashes = hashes[counted]
    # [S]: of the words that count.
    lengths = np.bincount(sentences, minlength=len(starts))
    begins = np.cumsum(lengths) - lengths
    for length in range(SHORTEST, RUN):
        whole = np.flatnonzero(lengths == length)
        words = [hashes[begins[whole] + place] for place in range(length)]
        yield length, _combined(words), whole
    count = max(0, len(hashes) - RUN + 1)
    # A run is in one sentence where its last word is in the sentence of its first.
    inside = sentences[RUN - 1 :] == sentences[:count]
    values = _combined([hashes[place : place + count] for place in range(RUN)])
    yield RUN, values[inside], sentences[:count][inside]


def _combined(words: Sequence[np.ndarray]) -> np.ndarray:
    """One hash of each run, from hashes of all first words, second words, and so on."""
    return reduce(lambda values, each: values * _MULTIPLIER + each, words)


def reduced(word: str) -> str:
    """The letters and digits of a word in lower case, the same for Unicode's normal
    forms NFC and NFD.
    """
    if word in (BEGIN, END):
        return ""
    lowered = normalize("NFC", word.lower())
    return lowered if lowered.isalnum() else "".join(filter(str.isalnum, lowered))


def overlapping_sentences(corpus: Corpus, overlap: Overlap) -> int:
    """How many sentences of a corpus, held-out ones included, `overlap` finds; an
    `InputError` for one of subwords.
    """
    corpus.require_words()
    hashes = overlap.hashes(corpus.lexicon)
    if corpus.record.unknown_id is not None:
        hashes[corpus.record.unknown_id] = _OTHER
    shards = map(corpus.read_shard, corpus.train + corpus.held_out)
    found = (
        overlap.find(hashes[ids], np.flatnonzero(ids == corpus.begin_id))
        for ids in shards
    )
    return int(sum(map(np.count_nonzero, found)))
