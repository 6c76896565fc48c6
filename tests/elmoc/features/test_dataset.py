"""Feature dataset: workers of a `DataLoader`, forked or started anew, read what one process reads."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from elmoc.features.dataset import FeatureDataset, pad_states
from elmoc.features.join import join_features
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.test_linked import KINDS, STATES, write, write_parts


@pytest.mark.parametrize(
    ("start", "workers", "kind"),
    [
        ("fork", 4, "allennlp"),
        ("fork", 4, "flat compressed"),
        ("spawn", 1, "allennlp"),
        pytest.param("spawn", 4, "flat", marks=pytest.mark.slow),  # each of them imports torch
    ],
)
def test_workers_read_the_same(tmp_path: Path, start: str, workers: int, kind: str) -> None:
    path = tmp_path / "f.h5"
    join_features(write_parts(path, **KINDS[kind]), path, merge=False)
    dataset = FeatureDataset(path, select=[3, 0, 5, 4, 1, 2, 2])
    np.testing.assert_array_equal(dataset[0], STATES[3], "the file is in use before the workers start")
    loader = DataLoader(
        dataset, batch_size=2, num_workers=workers, multiprocessing_context=start, collate_fn=pad_states
    )
    found = [
        states[:, :, :length]
        for batch, lengths in loader
        for states, length in zip(batch.split(1), lengths, strict=True)
    ]
    assert [each.dtype for each in found] == [torch.float32] * 7
    for one, index in zip(found, dataset.select, strict=True):
        np.testing.assert_array_equal(one[0], STATES[index])
    np.testing.assert_array_equal(dataset[1], STATES[0], "and after they have ended")


def test_batches_are_padded_with_zeros_and_one_layer_gets_an_axis(tmp_path: Path) -> None:
    dataset = FeatureDataset(write(tmp_path / "top.h5", 0, 2, single=True))
    batch, lengths = pad_states([dataset[0], dataset[1]])
    assert batch.shape == (2, 1, 4, 4)
    assert lengths.tolist() == [4, 2]
    np.testing.assert_array_equal(batch[1, 0, :2], STATES[1][0])
    assert not batch[1, :, 2:].any()


def test_a_file_is_pickled_as_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("f.h5"), 0, 6)
    with FeatureFile("f.h5") as file:
        data = pickle.dumps(file)
    assert len(data) < 500
    monkeypatch.chdir("/")
    with pickle.loads(data) as again:
        np.testing.assert_array_equal(again[5], STATES[5])
