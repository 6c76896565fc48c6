"""Batches: how a stream of items, endless or not, is read in lists of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# words of an endless stream that are read before its sentences are sorted by length into batches
BUFFER_WORDS = 50_000


def buffered(
    items: Iterable[T],
    size: Callable[[T], int],
    *,
    most: int = BUFFER_WORDS,
    may_begin: Callable[[T], bool] = lambda item: True,
) -> Iterator[list[T]]:
    """The items in lists whose sizes, e.g. in words, sum up to at least `most`, but for the last.

    A list begins with an item that `may_begin` one.
    """
    buffer: list[T] = []
    in_buffer = 0
    for item in items:
        if in_buffer >= most and may_begin(item):
            yield buffer
            buffer, in_buffer = [], 0
        buffer.append(item)
        in_buffer += size(item)
    if buffer:
        yield buffer
