"""Feature dataset: workers of a `DataLoader`, forked or started anew, read what one process reads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
from elmoc.features.dataset import FeatureDataset, pad_states
from tests.elmoc.features.sentences import LINES, states_of, write_sentences
from torch.utils.data import DataLoader

STATES = [states_of(index, len(line.split())) for index, line in enumerate(LINES)]


@pytest.mark.parametrize(
    ("compress", "start", "workers"),
    [(False, "fork", 4), (True, "fork", 4), pytest.param(True, "spawn", 1, marks=pytest.mark.slow)],
)
def test_workers_read_the_same_while_the_parent_reads(tmp_path: Path, compress: bool, start: str, workers: int) -> None:
    file = tmp_path / "f.h5"
    if compress:
        with h5py.File(file, "w") as foreign:
            for index, states in enumerate(STATES * 20):
                foreign.create_dataset(str(index), data=states, compression="gzip")
    else:
        write_sentences(file, {}, list(zip(LINES, STATES, strict=True)) * 20)
    dataset, ended = FeatureDataset(file), threading.Event()

    def read() -> None:
        while not ended.is_set():
            for index in range(len(dataset)):
                np.testing.assert_array_equal(dataset[index], STATES[index % len(STATES)])

    with ThreadPoolExecutor(1) as busy:
        reading = busy.submit(read)
        for _ in range(3 if start == "fork" else 1):
            loader = DataLoader(
                dataset, batch_size=None, num_workers=workers, multiprocessing_context=start, timeout=60
            )
            for index, states in enumerate(loader):
                np.testing.assert_array_equal(states, STATES[index % len(STATES)])
            assert index == len(dataset) - 1
        ended.set()
        reading.result()


def test_batches_are_padded_with_zeros_and_one_layer_gets_an_axis(tmp_path: Path) -> None:
    write_sentences(tmp_path / "top.h5", {}, [("a b c d", states_of(0, 4)[0]), ("a b", states_of(1, 2)[0])])
    dataset = FeatureDataset(tmp_path / "top.h5")
    batch, lengths = pad_states([dataset[0], dataset[1]])
    assert batch.shape == (2, 1, 4, 4)
    assert lengths.tolist() == [4, 2]
    np.testing.assert_array_equal(batch[1, 0, :2], states_of(1, 2)[0])
    assert not batch[1, :, 2:].any()
