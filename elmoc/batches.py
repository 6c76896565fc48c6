"""Batches: which sentences are encoded together, and how a stream is divided."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

# Words and sentences of a batch at most, by default: larger ones are hardly faster, and
# their layer states take memory (32,768 words: 0.4 GB at the paper's size).
BATCH_WORDS = 32768
BATCH_SIZE = 2048
# Words of an endless stream that are read before its sentences are sorted by length
# into batches: enough that sentences of similar length meet.
BUFFER_WORDS = 50_000


def length_bucketed(
    lengths: Sequence[int], batch_words: int, batch_size: int, *, padded: bool = True
) -> Iterator[list[int]]:
    """Indices of sentences in batches of similar length, longest first.

    Args:
        lengths: words of each sentence, `<s>` and `</s>` not counted.
        batch_words: words of a batch at most, `<s>` and `</s>` counted; but a batch
            always holds a sentence.
        batch_size: sentences of a batch at most.
        padded: whether the words that pad sentences to the longest count, too.
    """
    batch: list[int] = []
    words = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        own = lengths[index] + 2
        # Longest first: the first sentence of a batch sets its width.
        more = lengths[batch[0]] + 2 if batch and padded else own
        if batch and (words + more > batch_words or len(batch) == batch_size):
            yield batch
            batch = []
            words = 0
            more = own
        batch.append(index)
        words += more
    if batch:
        yield batch


def buffered(
    items: Iterable[T],
    size: Callable[[T], int],
    *,
    most: int = BUFFER_WORDS,
) -> Iterator[list[T]]:
    """Yield the items, in their order, in lists; only the last list may be smaller than
    `most`.

    Args:
        items: any number of items, e.g. sentences; they are taken one by one.
        size: the size of an item, e.g. in words.
        most: a list ends where its sizes sum up to at least this.
    """
    buffer: list[T] = []
    in_buffer = 0
    for item in items:
        if in_buffer >= most:
            yield buffer
            buffer = []
            in_buffer = 0
        buffer.append(item)
        in_buffer += size(item)
    if buffer:
        yield buffer
