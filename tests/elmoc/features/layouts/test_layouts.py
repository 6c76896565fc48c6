"""All layouts: what is written is read again, whole, compressed or put in pieces, and foreign files are known."""

from itertools import product
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.layouts.interface import FeatureShape
from elmoc.features.options import LayoutName
from elmoc.features.reader import FeatureFile
from elmoc.text.sentences import Sentence
from tests.elmoc.features.sentences import write_features

from elmoc.features.layouts import LAYOUTS

TEXTS = ["The cat sat .", "  a / b/c  ", "Zürich\u00a0— naïve 😀", "The cat sat .", "//", "", "50 % of", ".", "0"]
SENTENCES = [Sentence(line.split(), line, f"nw/wsj/{index // 4}") for index, line in enumerate(TEXTS)]
WORDS = sum(len(sentence.tokens) for sentence in SENTENCES)
OPTIONS = [
    *({"layout": layout, "compress": compress} for layout, compress in product(LAYOUTS, (False, True))),
    {"layout": "allennlp", "sentence_keys": True},
    {"layout": "allennlp", "sentence_map": False},
]


def shape_of(*, single: bool = False, dtype: str = "float32") -> FeatureShape:
    return FeatureShape(layers=1 if single else 3, width=8, dtype=dtype, single=single, words=WORDS)


def states_of(index: int, shape: FeatureShape) -> np.ndarray:
    numbers = np.random.default_rng(index).standard_normal(shape.of(len(SENTENCES[index].tokens)))
    return numbers.astype(shape.dtype)


def write(path: Path, shape: FeatureShape, **options: Any) -> None:
    with write_features(path, {"model": "m"}, shape=shape, **options) as writer:
        for index, sentence in enumerate(SENTENCES):
            writer.add(sentence, states_of(index, shape))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_written_is_read(tmp_path: Path, options: dict[str, Any]) -> None:
    for number, (single, dtype) in enumerate(product((False, True), ("float32", "float16"))):
        shape = shape_of(single=single, dtype=dtype)
        write(tmp_path / f"{number}.h5", shape, **options)
        with FeatureFile(tmp_path / f"{number}.h5") as features:
            assert (features.layout, features.layers, features.width) == (options["layout"], shape.layers, 8)
            assert len(features) == len(SENTENCES)
            assert features.attributes == {"model": "m"}
            for index in range(len(SENTENCES)):
                array = features[index]
                np.testing.assert_array_equal(array, states_of(index, shape))
                assert array.dtype == dtype
                assert array.flags.c_contiguous
                assert features.lengths[index] == len(SENTENCES[index].tokens)
            features.check()


def test_a_long_sentence_is_compressed_in_chunks(tmp_path: Path) -> None:
    shape = FeatureShape(layers=2, width=16, dtype="float32", single=False, words=20_000)
    states = np.arange(2 * 20_000 * 16, dtype=np.float32).reshape(2, 20_000, 16)
    for layout in LAYOUTS:
        with write_features(tmp_path / layout, {}, shape=shape, layout=layout, compress=True) as writer:
            writer.add(Sentence(["w"] * 20_000, document="d"), states)
        with FeatureFile(tmp_path / layout) as features, h5py.File(tmp_path / layout) as file:
            np.testing.assert_array_equal(features[0], states)
            assert file[{"e2e-coref": "d/0", "flat": "states"}.get(layout, "0")].id.get_num_chunks() > 1


def test_the_names_are_those_of_readers_and_writers() -> None:
    assert list(get_args(LayoutName)) == list(LAYOUTS)


def test_layouts_and_versions_of_later_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", shape_of())
    for name, value in (("format_version", 2), ("layout", "other"), ("layout", [1, 2])):
        with h5py.File(tmp_path / "f.h5", "r+") as file:
            before, file.attrs[name] = file.attrs[name], value
        with pytest.raises(InputError, match="version"):
            FeatureFile(tmp_path / "f.h5")
        with h5py.File(tmp_path / "f.h5", "r+") as file:
            file.attrs[name] = before


def test_files_of_other_tools_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    array = np.arange(3 * 2 * 4, dtype=np.float32).reshape(3, 2, 4)
    with h5py.File(tmp_path / "bilm", "w") as file:
        file["0"] = array
    with h5py.File(tmp_path / "keys", "w") as file:
        file["a sentence"] = array
        file["another one"] = array + 1
    with h5py.File(tmp_path / "coref", "w") as file:
        for name in ("bc:b", "bc:a"):
            file.create_group(name)["0"] = np.moveaxis(array, 0, 2)
    with h5py.File(tmp_path / "flat", "w") as file:
        file["states"], file["offsets"] = np.moveaxis(array, 1, 0), [0, 2]
    for name, layout in (("bilm", "allennlp"), ("keys", "allennlp"), ("coref", "e2e-coref"), ("flat", "flat")):
        with FeatureFile(tmp_path / name) as features:
            assert features.layout == layout
            np.testing.assert_array_equal(features[0], array)
            if name == "keys":
                assert features.find(["another", "one"]) == 1
            if name == "coref":
                assert features.documents == {"bc:a": range(1), "bc:b": range(1, 2)}
