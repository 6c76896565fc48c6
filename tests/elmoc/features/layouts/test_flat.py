"""The flat layout: its datasets, and files whose parts do not fit each other."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import write_features

from elmoc.features.layouts import Entry, FeatureShape

LENGTHS = [3, 0, 2, 5]


def write(path: Path) -> np.ndarray:
    """A file of sentences; the states of their words."""
    shape = FeatureShape(layers=2, width=4, dtype="float32", single=False, words=sum(LENGTHS))
    states = np.arange(sum(LENGTHS) * 2 * 4, dtype=np.float32).reshape(-1, 2, 4)
    ends = np.cumsum(LENGTHS)
    with write_features(path, {}, shape=shape, layout="flat") as writer:
        for length, end in zip(LENGTHS, ends, strict=True):
            array = np.ascontiguousarray(np.moveaxis(states[end - length : end], 1, 0))
            writer.add(Entry(length), array)
    return states


def test_layout(tmp_path: Path) -> None:
    states = write(tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5") as file:
        assert set(file) == {"states", "offsets"}
        np.testing.assert_array_equal(file["states"][...], states)
        assert file["offsets"].dtype == np.int64
        assert list(file["offsets"]) == [0, 3, 3, 5, 10]
    with FeatureFile(tmp_path / "f.h5") as features:
        assert not features.view(0).flags.owndata


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("offsets", [0, 3, 3, 5, 11]),
        ("offsets", [1, 3, 3, 5, 10]),
        ("offsets", [0, 3, 2, 5, 10]),
        ("offsets", "0"),
        ("offsets", None),
        ("states", np.zeros((10, 8), np.float32)),
        ("states", np.zeros((10, 2, 4), np.int32)),
        ("states", None),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path: Path, name: str, content: Any) -> None:
    write(tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        del file[name]
        if content is not None:
            file[name] = content
    with pytest.raises(InputError, match="cannot be read"):
        FeatureFile(tmp_path / "f.h5")
