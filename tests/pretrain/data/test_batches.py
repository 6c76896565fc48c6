"""Batches: their vectors are those of the tables, gathered once each, and the threads start and end well."""

import threading
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.devices import CPU
from elmoc.word_vectors.table import VectorTable
from pretrain.data.batches import Batch, BatchMaker, stream_batches
from pretrain.data.windows import Position, Window
from tests.pretrain.data.reading import windows_of_shards


class CountedMaker(BatchMaker):
    """Counts the batches that were made."""

    def __init__(self, inputs: VectorTable, targets: VectorTable) -> None:
        super().__init__(inputs, targets)
        self.made = threading.Semaphore(0)

    def batch(self, window: Window) -> Batch:
        batch = super().batch(window)
        self.made.release()
        return batch


def streaming_threads() -> int:
    return sum(thread.name.startswith("vector-streaming") for thread in threading.enumerate())


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


@pytest.mark.parametrize("inputs", ["raw", "half"])
@pytest.mark.parametrize("targets", ["half", "other", None])
def test_batches_have_the_vectors_of_their_words(tiny_corpus: Corpus, inputs: str, targets: str | None) -> None:
    table, other = VectorTable(tiny_corpus, inputs), targets and VectorTable(tiny_corpus, targets)
    batches = stream_batches(first_windows(tiny_corpus), BatchMaker(table, other or None), CPU)
    for batch, window in islice(zip(batches, first_windows(tiny_corpus), strict=False), 30):
        if other:
            check_vectors(batch, window, table, other)
        for direction, ids in window.ids.items():
            np.testing.assert_array_equal(batch.inputs(direction).numpy(), table.rows[ids[:, :-1]])
            assert targets or batch.targets(direction).vectors is None
            rows, index = batch.distinct_inputs(direction)
            assert len(rows) == len(np.unique(ids[:, :-1]))
            assert str(rows.dtype) == f"torch.{table.rows.dtype}", "widened on the device only"
            np.testing.assert_array_equal(rows[index].float().numpy(), batch.inputs(direction).numpy())
    batches.close()
    assert streaming_threads() == 0


def test_a_batch_in_use_is_left_alone_while_others_are_made_ahead(tiny_corpus: Corpus) -> None:
    table = VectorTable(tiny_corpus, "raw")
    maker = CountedMaker(table, table)
    batches = stream_batches(first_windows(tiny_corpus), maker, CPU)
    for number, (batch, window) in enumerate(islice(zip(batches, first_windows(tiny_corpus), strict=False), 12)):
        for _ in range(4 if number == 0 else 1):  # this one, and three ahead
            assert maker.made.acquire(timeout=200)
        if number in (0, 7):
            assert not maker.made.acquire(timeout=0.05)
        check_vectors(batch, window, table, table)
    batches.close()


def test_the_thread_that_makes_a_batch_pins_it_for_an_accelerator(
    tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set()

    def pin_memory(tensor: torch.Tensor) -> torch.Tensor:
        threads.add(threading.current_thread().name)
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    table = VectorTable(tiny_corpus, "raw")
    batches = stream_batches(first_windows(tiny_corpus), BatchMaker(table, table), torch.device("meta"))
    for batch in islice(batches, 2):
        assert batch.input_vectors.is_meta
        assert all(ids.is_meta for ids in batch.token_ids.values())
    batches.close()
    assert {name.partition("_")[0] for name in threads} == {"vector-streaming"}


def test_what_goes_wrong_in_the_windows_or_the_gathering_is_raised(tiny_corpus: Corpus) -> None:
    table = VectorTable(tiny_corpus, "raw")
    windows = list(islice(first_windows(tiny_corpus), 5))

    def broken() -> Iterator[Window]:
        yield from windows
        raise ValueError("shard 7 is broken")

    batches = stream_batches(broken(), BatchMaker(table, table), CPU)
    with pytest.raises(ValueError, match="shard 7 is broken"):
        list(batches)
    wrong = Window({name: ids + np.uint32(tiny_corpus.types) for name, ids in windows[0].ids.items()}, Position())
    batches = stream_batches(iter([*windows, wrong]), BatchMaker(table, table), CPU)
    with pytest.raises(IndexError):
        list(batches)
    assert list(stream_batches(iter([]), BatchMaker(table, table), CPU)) == []
    assert streaming_threads() == 0
