"""The loader: the vectors of a batch are those of the table, gathered once each, and its threads start and end well."""

import threading
from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pytest
import torch
from pretrain.data.loader import gather, prefetched, stream_batches

from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.data.batches import Batch, Buffers, ResidentTables, StreamedTables
from pretrain.data.windows import Position, Window
from tests.pretrain.data.reading import windows_of_shards

CPU = torch.device("cpu")


class CountedTables(StreamedTables):
    """Counts how often windows were filled and buffers allocated."""

    def __init__(self, inputs: VectorTable, targets: VectorTable) -> None:
        super().__init__(inputs, targets)
        self.filled = threading.Semaphore(0)
        self.allocated = 0

    def buffers(self, shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        self.allocated += 1
        return super().buffers(shape, device, pin)

    def fill(self, window: Window, buffers: Buffers) -> int:
        count = super().fill(window, buffers)
        self.filled.release()
        return count


def streaming_threads() -> int:
    return sum(thread.name == "vector-streaming" for thread in threading.enumerate())


def first_windows(corpus: Corpus) -> Iterator[Window]:
    return windows_of_shards(corpus, 4, 5, position=Position(0, 0, 3))


def check_vectors(batch: Batch, window: Window, inputs: VectorTable, targets: VectorTable) -> None:
    """The batch has the tables' rows of the window's ids."""
    assert batch.next == window.next
    for direction, ids in window.ids.items():
        np.testing.assert_array_equal(batch.targets(direction).ids.numpy(), ids[:, 1:])
        for vectors, table, own in (
            (batch.inputs(direction), inputs, ids[:, :-1]),
            (batch.targets(direction).vectors, targets, ids[:, 1:]),
        ):
            assert vectors.dtype == torch.float32
            np.testing.assert_array_equal(vectors.numpy(), np.asarray(table.rows, dtype=np.float32)[own])


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("inputs", ["raw", "half"])
@pytest.mark.parametrize("targets", ["raw", "other"])
def test_batches_are_rows_of_the_tables(tiny_corpus: Corpus, inputs: str, targets: str, on_device: bool) -> None:
    tables = [VectorTable(tiny_corpus, name) for name in (inputs, targets)]
    batches = stream_batches(
        first_windows(tiny_corpus), ResidentTables(*tables, CPU) if on_device else StreamedTables(*tables), CPU
    )
    for batch, window in islice(zip(batches, first_windows(tiny_corpus), strict=False), 30):
        check_vectors(batch, window, *tables)
    batches.close()
    assert streaming_threads() == 0


def test_a_batch_in_use_is_left_alone_while_others_are_made_ahead(tiny_corpus: Corpus) -> None:
    table = VectorTable(tiny_corpus, "raw")
    tables = CountedTables(table, table)
    batches = stream_batches(first_windows(tiny_corpus), tables, CPU, ahead=3)
    for number, (batch, window) in enumerate(islice(zip(batches, first_windows(tiny_corpus), strict=False), 12)):
        for _ in range(5 if number == 0 else 1):  # this one, three in the queue, and one in hand
            assert tables.filled.acquire(timeout=20)
        if number in (0, 7):
            assert not tables.filled.acquire(timeout=0.05)
        check_vectors(batch, window, table, table)
    batches.close()


def test_the_buffers_are_allocated_once_and_used_again(tiny_corpus: Corpus) -> None:
    tables = CountedTables(VectorTable(tiny_corpus, "half"), VectorTable(tiny_corpus, "other"))
    batches = stream_batches(first_windows(tiny_corpus), tables, CPU, ahead=2)
    seen = [(batch.input_vectors.data_ptr(), batch.target_vectors.data_ptr()) for batch in islice(batches, 100)]
    assert tables.allocated == 4
    assert len(set(seen)) == 4
    assert seen[4:] == seen[:-4]
    batches.close()


def test_what_goes_wrong_in_the_windows_or_the_tables_is_raised(tiny_corpus: Corpus) -> None:
    table = VectorTable(tiny_corpus, "raw")
    windows = list(islice(first_windows(tiny_corpus), 5))

    def broken() -> Iterator[Window]:
        yield from windows
        raise ValueError("shard 7 is broken")

    batches = stream_batches(broken(), StreamedTables(table, table), CPU)
    with pytest.raises(ValueError, match="shard 7 is broken"):
        list(batches)
    wrong = Window({name: ids + np.uint32(tiny_corpus.types) for name, ids in windows[0].ids.items()}, Position())
    batches = stream_batches(iter([*windows, wrong]), StreamedTables(table, table), CPU)
    with pytest.raises(IndexError):
        list(batches)
    assert list(stream_batches(iter([]), StreamedTables(table, table), CPU)) == []
    assert streaming_threads() == 0


def test_only_distinct_rows_are_gathered_and_once_for_both_uses(tiny_corpus: Corpus) -> None:
    raw, half, other = (VectorTable(tiny_corpus, name) for name in ("raw", "half", "other"))
    ids = {"forward": np.array([[3, 5, 3], [5, 3, 9]]), "backward": np.array([[9, 5, 3], [3, 5, 3]])}
    batch = gather(ids, StreamedTables(raw, raw), CPU)
    assert len(batch.input_vectors) == 3
    assert batch.target_vectors is batch.input_vectors
    batch = gather(ids, StreamedTables(half, other), CPU)
    assert (batch.input_vectors.shape, batch.target_vectors.shape) == ((3, 8), (3, 6))
    assert batch.input_vectors.dtype == torch.float16, "widened on the device only"


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


def test_closing_ends_the_thread() -> None:
    stream = prefetched(count(1), ahead=2)
    assert [next(stream), next(stream)] == [1, 2]
    assert streaming_threads() == 1
    stream.close()  # type: ignore[attr-defined]
    assert streaming_threads() == 0
