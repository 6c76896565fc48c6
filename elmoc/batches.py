"""Batches: how an endless stream of items is read in lists of bounded size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# words of an endless stream that are read before its sentences are sorted by length into batches
BUFFER_WORDS = 50_000


def buffered(items: Iterable[T], size: Callable[[T], int], *, most: int = BUFFER_WORDS) -> Iterator[list[T]]:
    """The items in lists whose sizes, e.g. in words, sum up to at least `most`, but for the last."""
    buffer: list[T] = []
    in_buffer = 0
    for item in items:
        buffer.append(item)
        in_buffer += size(item)
        if in_buffer >= most:
            yield buffer
            buffer, in_buffer = [], 0
    if buffer:
        yield buffer
