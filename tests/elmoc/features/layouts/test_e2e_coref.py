"""The e2e-coref layout: what `load_lm_embeddings` reads, and documents that have no place of their own."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import write_features

from elmoc.features.layouts import Entry, FeatureShape

SHAPE = FeatureShape(layers=3, width=4, dtype="float32", single=False)
DOCUMENTS = {"nw/wsj/00/a_0": [3, 1, 2], "bc/b_1": [2], "bc/b_0": [1] * 11}


def states_of(document: str, sentence: int) -> np.ndarray:
    words = DOCUMENTS[document][sentence]
    generator = np.random.default_rng([sentence, len(document)])
    return generator.standard_normal((3, words, 4)).astype(np.float32)


def write(path: Path) -> None:
    with write_features(path, {"model": "m"}, shape=SHAPE, layout="e2e-coref") as writer:
        for document, sentences in DOCUMENTS.items():
            for index, words in enumerate(sentences):
                writer.add(Entry(words, document=document), states_of(document, index))


def load_lm_embeddings(lm_file: Any, doc_key: str) -> np.ndarray:
    """How e2e-coref reads a document: all its sentences, padded to the longest."""
    group = lm_file[doc_key.replace("/", ":")]
    sentences = [group[str(index)][...] for index in range(len(list(group.keys())))]
    padded = np.zeros([len(sentences), max(len(each) for each in sentences), 4, 3])
    for index, each in enumerate(sentences):
        padded[index, : each.shape[0], :, :] = each
    return padded


def test_layout_is_what_e2e_coref_reads(tmp_path: Path) -> None:
    write(tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5") as file, FeatureFile(tmp_path / "f.h5") as features:
        in_order = iter(features)
        assert set(file) == {name.replace("/", ":") for name in DOCUMENTS}
        for document, sentences in DOCUMENTS.items():
            padded = load_lm_embeddings(file, document)
            assert len(padded) == len(sentences)
            for index, words in enumerate(sentences):
                np.testing.assert_array_equal(np.moveaxis(padded[index, :words], 2, 0), states_of(document, index))
                np.testing.assert_array_equal(next(in_order), states_of(document, index))


@pytest.mark.parametrize("documents", [["a/b", "a:b"], ["a", "b", "a"], ["."]])
def test_documents_without_a_place_are_refused(tmp_path: Path, documents: list[str]) -> None:
    def write_them() -> None:
        with write_features(tmp_path / "f.h5", {}, shape=SHAPE, layout="e2e-coref") as writer:
            for document in documents:
                writer.add(Entry(2, document=document), np.zeros((3, 2, 4), np.float32))

    with pytest.raises((InputError, ValueError)):
        write_them()
    assert not list(tmp_path.iterdir())


def test_groups_that_are_links_or_empty_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        file["link"] = h5py.SoftLink("/bc:b_1")
    with pytest.raises(InputError, match="is a link"):
        FeatureFile(tmp_path / "f.h5")
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file.create_group("a")
    with pytest.raises(InputError, match="cannot be read"):
        FeatureFile(tmp_path / "empty.h5")
