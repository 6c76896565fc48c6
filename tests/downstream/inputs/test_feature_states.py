"""Layer states of a feature file: read as they are, and refused with the sentence where one does not fit."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from downstream.inputs.feature_states import FeatureStates
from downstream.inputs.sentence import Sentence
from elmoc.errors import InputError
from elmoc.features.layouts.allennlp import MAP_KEY
from elmoc.features.reader import FeatureFile
from elmoc.files.records import parse_json
from tests.downstream.conftest import words_of
from tests.elmoc.features.sentences import write_sentences

SENTENCES = [Sentence(tuple(words), "ten.conll", 3 * row) for row, words in enumerate(words_of())]


def rewritten(path: Path, dtype: str, **options: object) -> Path:
    """The same feature file with numbers of another type, or in chunks."""
    other = path.with_name("rewritten.h5")
    with h5py.File(path) as file, h5py.File(other, "w") as copy:
        for name, dataset in file.items():
            values = dataset[()]
            copy.create_dataset(name, data=values if name == MAP_KEY else values.astype(dtype), **options)
    return other


def test_features_are_the_files(features: Path) -> None:
    states = FeatureStates(features, sentences=SENTENCES)
    with FeatureFile(features) as file:
        for row, found in enumerate(states.lookup(SENTENCES)):
            np.testing.assert_array_equal(found.numpy(), file[row])
    assert states.describe() == {"file": str(features), "model": "m1", "vectors": "v1"}


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "<f8", ">f4"])
@pytest.mark.parametrize("chunks", [None, True])
def test_features_of_other_types_and_in_chunks_are_read_as_float32(
    features: Path, dtype: str, chunks: bool | None, recwarn: pytest.WarningsRecorder
) -> None:
    path = rewritten(features, dtype, chunks=chunks)
    states = FeatureStates(path, sentences=SENTENCES)
    with FeatureFile(path) as file:
        for row, found in enumerate(states.lookup(SENTENCES)):
            assert found.dtype == torch.float32
            np.testing.assert_array_equal(found.numpy(), file[row].astype(np.float32))
    assert not recwarn.list


def test_a_missing_sentence_is_named(features: Path) -> None:
    unknown = Sentence(("Never", "seen", "."), "dev.conll", 12)
    with pytest.raises(
        InputError, match=r'"Never seen \." \(dev\.conll, line 12\) is not in the file.*downstream sentences'
    ):
        FeatureStates(features, sentences=[*SENTENCES, unknown])


@pytest.mark.parametrize("shape", [(3, 1, 4), (3, 3, 4), (2, 2, 4), (3, 2, 5), (2, 4)])
def test_a_sentence_of_another_shape_is_named(tmp_path: Path, shape: tuple[int, ...]) -> None:
    sentences = [(line, np.zeros((3, len(line.split()), 4), dtype=np.float32)) for line in ("a", "b c")]
    write_sentences(tmp_path / "f.h5", {}, sentences)
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        del file["1"]
        file["1"] = np.zeros(shape, dtype=np.float32)
    with pytest.raises(InputError, match=r'"b c" \(x, line 5\) has the shape .*, not 3 × 2 × 4'):
        FeatureStates(tmp_path / "f.h5", sentences=[Sentence(("b", "c"), "x", 5)])


def test_attributes_of_foreign_files_can_be_written_and_read_as_json(features: Path) -> None:
    with h5py.File(features, "r+") as file:
        file.attrs["scale"] = float("nan")
        file.attrs["scales"] = [1.5, float("inf")]
        file.attrs["cube"] = np.zeros((1, 1, 1))
    described = FeatureStates(features, sentences=SENTENCES).describe()
    assert described["scale"] == "nan"
    assert described["scales"] == [1.5, "inf"]
    assert described["cube"] == "[[[0.]]]"
    assert parse_json(json.dumps(described, ensure_ascii=False).encode(), where="", advice="") == described
