"""Tables: both kinds give the vectors of a window, and take the room that they should."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from pretrain.data.loader import gather

from elmoc.corpus import Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from elmoc.word_vectors.table import VectorTable
from pretrain.data.batches import ResidentTables, StreamedTables
from pretrain.data.sources import TrainingData
from pretrain.data.windows import Position, Window
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint

CPU = torch.device("cpu")
IDS = {"forward": np.array([[3, 5, 3], [5, 3, 9]]), "backward": np.array([[9, 5, 3], [3, 5, 3]])}


def data_of(inputs: VectorTable, targets: VectorTable, **values: Any) -> TrainingData:
    cut: dict[str, Any] = {"directions": DIRECTIONS, "streams": 2, "window": 3, "mix_shards": 1, "seed": 1}
    return TrainingData(corpus=None, inputs=inputs, targets=targets, **cut, **values)  # type: ignore[arg-type]


def test_the_tables_of_a_run_are_streamed_or_resident_and_without_targets_that_nobody_reads(
    tiny_corpus: Corpus,
) -> None:
    raw, other = (VectorTable(tiny_corpus, name) for name in ("raw", "other"))
    assert isinstance(data_of(raw, other).tables(CPU), StreamedTables)
    assert isinstance(data_of(raw, other, resident=True).tables(CPU), ResidentTables)
    for resident in (False, True):
        tables = data_of(raw, other, reads_targets=False, resident=resident).tables(CPU)
        batch = gather(IDS, tables, CPU)
        assert batch.targets("forward").vectors is None
        np.testing.assert_array_equal(batch.targets("forward").ids.numpy(), IDS["forward"][:, 1:])
        np.testing.assert_array_equal(batch.inputs("backward").numpy(), raw.rows[IDS["backward"][:, :-1]])


@pytest.mark.parametrize("kind", [StreamedTables, ResidentTables])
@pytest.mark.parametrize("inputs", ["raw", "half"])
@pytest.mark.parametrize("targets", ["half", "other"])
def test_the_filled_buffers_speak_of_the_rows_of_the_ids(
    tiny_corpus: Corpus, kind: type, inputs: str, targets: str
) -> None:
    tables = [VectorTable(tiny_corpus, name) for name in (inputs, targets)]
    opened = StreamedTables(*tables) if kind is StreamedTables else ResidentTables(*tables, CPU)
    buffers = opened.buffers((2, 2, 3), CPU, False)
    count = opened.fill(Window(IDS, Position()), buffers)
    assert buffers.rows.dtype == buffers.ids.dtype == torch.int64
    np.testing.assert_array_equal(buffers.ids.numpy(), np.stack(list(IDS.values())))
    batch = opened.batch(Window(IDS, Position()), buffers, count)
    for vectors, table in zip((batch.input_vectors, batch.target_vectors), tables, strict=True):
        assert vectors.dtype == {"float16": torch.float16, "float32": torch.float32}[str(table.rows.dtype)]
        for rows, ids in zip(buffers.rows, IDS.values(), strict=True):
            np.testing.assert_array_equal(vectors[rows].numpy(), table.rows[ids])


def test_the_room_for_rows_is_bounded_by_the_window_and_by_the_table(tiny_corpus: Corpus) -> None:
    raw, other = (VectorTable(tiny_corpus, name) for name in ("raw", "other"))
    streamed = StreamedTables(raw, other)
    few, many = (streamed.buffers(shape, CPU, False) for shape in ((2, 1, 4), (2, 50, 21)))
    assert [vectors.shape for vectors in few.vectors] == [(8, 8), (8, 6)]
    assert [vectors.shape for vectors in many.vectors] == [(tiny_corpus.types, 8), (tiny_corpus.types, 6)]
    assert many.rows.shape == (2, 50, 21)
    shared = StreamedTables(raw, VectorTable(tiny_corpus, "raw")).buffers((2, 1, 4), CPU, False)
    assert len(shared.vectors) == 1
    resident = ResidentTables(raw, other, CPU).buffers((2, 50, 21), CPU, False)
    assert resident.vectors == []
    assert resident.ids is resident.rows


def test_a_table_for_both_uses_is_held_once_and_stays_memory_mapped_on_the_cpu(tiny_corpus: Corpus) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = VectorTable(tiny_corpus, "raw")
        resident = ResidentTables(table, VectorTable(tiny_corpus, "raw"), CPU)
    assert [held.data_ptr() for held in resident.tables] == [table.rows.ctypes.data]


def test_tables_that_do_not_fit_on_the_device_are_refused(tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, other = (VectorTable(tiny_corpus, name) for name in ("raw", "other"))
    both = raw.rows.nbytes + other.rows.nbytes
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (both - 1, 10**9))
    with pytest.raises(
        InputError, match=rf"need {both / 1000:.1f} KB and cuda:0 has {both / 1000:.1f} KB free: set it"
    ):
        data_of(raw, other).require_device_memory(torch.device("cuda:0"))
    data_of(raw, raw).require_device_memory(torch.device("cuda:0"))
    data_of(raw, other).require_device_memory(CPU)


def test_a_run_with_its_tables_on_the_device_is_the_same(runs: TinyRuns) -> None:
    streamed = last_checkpoint(runs.run("streamed", data__target_vectors="other"))
    resident = last_checkpoint(runs.run("resident", data__target_vectors="other", data__tables_on_device=True))
    assert_same(streamed["encoder"], resident["encoder"])
