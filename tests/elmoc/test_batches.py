"""Batches of sentences: they keep to their limits, and lose nothing."""

from elmoc.batches import length_bucketed


def test_batches_keep_to_their_limits_and_lose_nothing() -> None:
    lengths = [5, 1, 9, 3, 3, 40, 0, 2]
    batches = list(length_bucketed(lengths, batch_words=20, batch_size=3))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * (max(lengths[index] for index in batch) + 2)
        assert len(batch) <= 3
        assert padded <= 20 or len(batch) == 1
    assert [len(batch) for batch in batches] == [1, 1, 2, 3, 1], "longest first, as full as may be"
    unpadded = list(length_bucketed(lengths, batch_words=20, batch_size=3, padded=False))
    assert [[lengths[index] for index in batch] for batch in unpadded] == [[40], [9, 5], [3, 3, 2], [1, 0]]
