"""The bilm layout: its datasets, one a line, with the axis of layers, and nothing else."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import LINES, states_of, write_sentences


def test_layout_is_that_of_dump_bilm_embeddings(tmp_path: Path) -> None:
    sentences = [(line, states_of(index, len(line.split()))) for index, line in enumerate(LINES)]
    write_sentences(tmp_path / "f.h5", {}, sentences, layout="bilm")
    with h5py.File(tmp_path / "f.h5") as file:
        assert sorted(file) == sorted(map(str, range(len(LINES))))
        for index, (_, states) in enumerate(sentences):
            assert file[str(index)].dtype == np.float32
            assert file[str(index)].chunks is None
            np.testing.assert_array_equal(file[str(index)][...], states)


def test_one_layer_has_the_axis_on_disk(tmp_path: Path) -> None:
    write_sentences(tmp_path / "f.h5", {}, [("a b", states_of(0, 2)[0])], layout="bilm")
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["0"].shape == (1, 2, 4)
    with FeatureFile(tmp_path / "f.h5") as features:
        assert features[0].shape == features.view(0).shape == (2, 4)
        with pytest.raises(InputError, match="has no map of sentences"):
            features.find(["a", "b"])
