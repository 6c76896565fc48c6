"""Subwords: which of them belong to a word, and how is a sentence cut that is longer than an encoder reads?"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""The first subwords of a vocabulary."""
PAD, UNKNOWN, BEGIN, END = range(4)
"""The ids of some of them."""
MOST_SUBWORDS = 16
"""Of a word; what is longer (addresses, mostly) is cut off, as only its first subword stands for it."""


class Subwords(dict[str, list[int]]):
    """The subwords of words, each word divided once. A word that has none is the unknown one."""

    def __init__(self, divide: Callable[[str], list[int]], *, unknown: int) -> None:
        super().__init__()
        self._divide, self._unknown = divide, unknown

    def __missing__(self, word: str) -> list[int]:
        ids = self[word] = self._divide(word)[:MOST_SUBWORDS] or [self._unknown]
        return ids


class Piece(NamedTuple):
    """Words `start` to `stop` of a sentence are read together, and of these `first` to `last` are kept."""

    start: int
    stop: int
    first: int
    last: int


def pieces(lengths: Sequence[int], *, most: int, overlap: int) -> Iterator[Piece]:
    """The pieces in which a sentence is read whose words have these numbers of subwords.

    A piece has at most `most` subwords. The next one begins with the last words of it, of at most `overlap` subwords,
    and the border between what is kept of the two is in the middle of them: so every word is kept once, where it has
    words on both sides.

    Args:
        lengths: each at most `most` - `overlap`.
        most: subwords that are read together.
        overlap: subwords of two pieces that are the same, at most.
    """
    start = first = 0
    while True:
        stop = _end(lengths, start, most)
        if stop == len(lengths):
            yield Piece(start, stop, first, stop)
            return
        again, subwords = stop, 0
        while again > start + 1 and subwords + lengths[again - 1] <= overlap:
            again -= 1
            subwords += lengths[again]
        border = (again + stop + 1) // 2
        yield Piece(start, stop, first, border)
        start, first = again, border


def cut(lengths: Sequence[int], *, most: int) -> Iterator[range]:
    """The pieces without overlap, as training reads them."""
    return (range(each.start, each.stop) for each in pieces(lengths, most=most, overlap=0))


def _end(lengths: Sequence[int], start: int, most: int) -> int:
    stop, subwords = start, 0
    while stop < len(lengths) and subwords + lengths[stop] <= most:
        subwords += lengths[stop]
        stop += 1
    return stop
