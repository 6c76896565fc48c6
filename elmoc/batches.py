"""Batches: how sentences are put together that are computed together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

# words of an endless stream that are read before its sentences are sorted by length into batches
BUFFER_WORDS = 50_000


def length_bucketed(
    lengths: Sequence[int], batch_words: int, batch_size: int, *, padded: bool = True
) -> Iterator[list[int]]:
    """Indices of sentences in batches of similar length, longest first.

    A batch holds at most `batch_words` words (boundaries included, and those that pad its sentences to the longest if
    it is `padded`) and `batch_size` sentences, but always one.
    """
    batch: list[int] = []
    words = longest = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = longest or lengths[index] + 2
        more = longest if padded else lengths[index] + 2
        if batch and (words + more > batch_words or len(batch) == batch_size):
            yield batch
            batch, words, longest = [], 0, lengths[index] + 2
            more = longest
        batch.append(index)
        words += more
    if batch:
        yield batch


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
