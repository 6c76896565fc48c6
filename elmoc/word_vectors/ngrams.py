"""N-grams: which sequences of characters a word is made of, and their buckets, as
fastText counts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

# The hash FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)


@dataclass(frozen=True)
class NgramKind:
    """fastText's n-grams (Bojanowski et al. 2017, Section 3.2), by their lengths and
    the number of buckets that they are hashed into.
    """

    buckets: Annotated[int, Meta(ge=1, le=1 << 31)]
    shortest: Annotated[int, Meta(ge=1)]
    longest: Annotated[int, Meta(le=100)]

    def of_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """All n-grams of the words, in fastText's order.

        They are found as by `push_subwords` in fasttext.cpp: in the characters of the
        word between < and >, without < and > alone.

        Returns:
            Two arrays int64 [n]: the place of the word of each n-gram, and its bucket.
        """
        encoded = [b"<%b>" % word.encode("utf-8", "surrogatepass") for word in words]
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        # Of UTF-8, bytes that begin with the bits 10 go on with a character.
        begins = np.flatnonzero((text & 0xC0) != 0x80)
        lengths = np.diff(begins, append=len(text))
        # fastText hashes bytes as signed numbers.
        signed = text.view(np.int8).astype(np.int32).view(np.uint32)
        word_ends = np.cumsum([len(each) for each in encoded])
        # Of each character, by its number: its word, and the last one of that word.
        word_of = np.searchsorted(word_ends, begins, side="right")
        last = np.searchsorted(begins, word_ends)[word_of] - 1
        characters = np.arange(len(begins))
        is_mark = (np.diff(word_of, prepend=-1) != 0) | (characters == last)
        starts = characters
        hashes = np.full(len(begins), _BASIS)
        found = [np.empty(0, np.int64)]
        buckets = [np.empty(0, np.int64)]
        # N-grams of one length are hashed together, each from the hash of the n-gram
        # that is a character shorter.
        for length in range(1, self.longest + 1):
            ends = starts + length - 1
            is_inside = ends <= last[starts]
            starts = starts[is_inside]
            hashes = hashes[is_inside]
            added = ends[is_inside]
            # A character has four bytes at most.
            for byte in range(4):
                has = lengths[added] > byte
                places = begins[added[has]] + byte
                hashes[has] = (hashes[has] ^ signed[places]) * _PRIME
            if length >= self.shortest:
                kept = ~is_mark[starts] if length == 1 else slice(None)
                found.append(starts[kept])
                buckets.append(hashes[kept].astype(np.int64) % self.buckets)
        first = np.concatenate(found)
        order = np.argsort(first, kind="stable")
        return word_of[first[order]], np.concatenate(buckets)[order]
