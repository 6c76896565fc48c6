"""Batches: which sentences are encoded together."""

from collections.abc import Iterator, Sequence

# Words and sentences of a batch at most, by default: larger ones are hardly faster, and
# their layer states take memory (32,768 words: 0.4 GB at the paper's size).
BATCH_WORDS = 32768
BATCH_SIZE = 2048


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
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        length = lengths[index] + 2
        # Longest first: the first sentence of a batch sets its width.
        longest = longest or length
        more = longest if padded else length
        if batch and (words + more > batch_words or len(batch) == batch_size):
            yield batch
            batch = []
            words = 0
            longest = length
            more = length
        batch.append(index)
        words += more
    if batch:
        yield batch
