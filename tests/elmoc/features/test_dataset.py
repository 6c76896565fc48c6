"""Feature dataset: workers of a `DataLoader`, forked or started anew, read what one process reads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from elmoc.features.dataset import FeatureDataset, pad_states
from tests.elmoc.features.sentences import LINES, states_of, write_sentences

STATES = [states_of(index, len(line.split())) for index, line in enumerate(LINES)]


@pytest.mark.parametrize(("compress", "start", "workers"), [(False, "fork", 4), (True, "fork", 4), (False, "spawn", 1)])
def test_workers_read_the_same(tmp_path: Path, compress: bool, start: str, workers: int) -> None:
    file = tmp_path / "f.h5"
    write_sentences(file, {}, list(zip(LINES, STATES, strict=True)), compress=compress)
    dataset = FeatureDataset(file, select=[3, 0, 4, 1, 2, 2])
    np.testing.assert_array_equal(dataset[0], STATES[3], "the file is in use before the workers start")
    for _ in range(2 if start == "fork" else 1):
        loader = DataLoader(
            dataset, batch_size=2, num_workers=workers, multiprocessing_context=start, collate_fn=pad_states
        )
        found = [
            states[0, :, :length]
            for batch, lengths in loader
            for states, length in zip(batch.split(1), lengths, strict=True)
        ]
        assert [each.dtype for each in found] == [torch.float32] * 6
        for one, index in zip(found, dataset.select, strict=True):
            np.testing.assert_array_equal(one, STATES[index])
    np.testing.assert_array_equal(dataset[1], STATES[0], "and after they have ended")


def test_batches_are_padded_with_zeros_and_one_layer_gets_an_axis(tmp_path: Path) -> None:
    write_sentences(tmp_path / "top.h5", {}, [("a b c d", states_of(0, 4)[0]), ("a b", states_of(1, 2)[0])])
    dataset = FeatureDataset(tmp_path / "top.h5")
    batch, lengths = pad_states([dataset[0], dataset[1]])
    assert batch.shape == (2, 1, 4, 4)
    assert lengths.tolist() == [4, 2]
    np.testing.assert_array_equal(batch[1, 0, :2], states_of(1, 2)[0])
    assert not batch[1, :, 2:].any()
