"""Are the vectors of a batch those of the table, gathered once each, and does the thread behave?"""

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.encoder import DIRECTIONS
from elmoc.vector_table import VectorTable
from pretrain.vector_streaming import gather, prefetched, stream_batches
from pretrain.windows import Position, training_windows


def streaming_threads() -> int:
    return sum(thread.name == "vector-streaming" for thread in threading.enumerate())


@pytest.mark.parametrize("inputs", ["raw", "half"])
@pytest.mark.parametrize("targets", ["raw", "other"])
def test_batches_are_rows_of_the_tables(tiny_corpus: Corpus, inputs: str, targets: str) -> None:
    tables = [VectorTable(tiny_corpus, name) for name in (inputs, targets)]

    def windows():
        return training_windows(
            tiny_corpus, streams=4, window=5, directions=DIRECTIONS, seed=1, position=Position(0, 0, 3)
        )

    batches = stream_batches(windows(), *tables, pin=False)
    for batch, window in islice(zip(batches, windows(), strict=False), 30):
        assert batch.next == window.next
        for direction, ids in window.ids.items():
            for vectors, table, own in (
                (batch.inputs(direction), tables[0], ids[:, :-1]),
                (batch.targets(direction), tables[1], ids[:, 1:]),
            ):
                assert vectors.dtype == torch.float32
                np.testing.assert_array_equal(vectors.numpy(), np.asarray(table.rows, dtype=np.float32)[own])
    batches.close()


def test_only_distinct_rows_are_gathered_and_once_for_both_uses(tiny_corpus: Corpus) -> None:
    raw, half, other = (VectorTable(tiny_corpus, name) for name in ("raw", "half", "other"))
    ids = {"forward": np.array([[3, 5, 3], [5, 3, 9]]), "backward": np.array([[9, 5, 3], [3, 5, 3]])}
    batch = gather(ids, raw, raw, Position(), pin=False)
    assert len(batch.input_rows) == 3
    assert batch.target_rows is batch.input_rows
    batch = gather(ids, half, other, Position(), pin=False)
    assert (batch.input_rows.shape, batch.target_rows.shape) == ((3, 8), (3, 6))
    assert batch.input_rows.dtype == torch.float16, "widened on the device only"


def test_prefetching_keeps_the_order_and_goes_ahead_so_far_and_no_further() -> None:
    made: list[int] = []
    waiting = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            waiting.release()
            yield number

    stream = prefetched(items(), ahead=3)
    assert next(stream) == 0
    for _ in range(5):  # the one that was taken, three in the queue, and the one in hand
        assert waiting.acquire(timeout=20)
    assert not waiting.acquire(timeout=0.05)
    assert list(stream) == list(range(1, 100))
    assert made == list(range(100))
    assert streaming_threads() == 0


def test_an_exception_of_the_thread_is_raised_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("shard 7 is broken")

    stream = prefetched(items(), ahead=8)
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="shard 7 is broken"):
        next(stream)
    assert streaming_threads() == 0


def test_closing_ends_the_thread_and_its_source() -> None:
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            number = 0
            while True:
                yield (number := number + 1)
        finally:
            ended.set()

    source = items()
    stream = prefetched(source, ahead=2)
    assert [next(stream), next(stream)] == [1, 2]
    assert streaming_threads() == 1
    stream.close()  # type: ignore[attr-defined]
    assert streaming_threads() == 0
    source.close()  # type: ignore[attr-defined]
    assert ended.is_set()
