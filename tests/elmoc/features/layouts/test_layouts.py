"""The contract of layouts, of which the example of docs/extending.md is one: what is written is read again."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.options import LayoutName
from elmoc.features.reader import LAYOUTS, FeatureFile
from tests.elmoc.features.sentences import write_features
from tests.pages import example

from elmoc.features.layouts import Entry, FeatureShape

TEXTS = ["The cat sat .", "  a / b/c  ", "Zürich\u00a0— naïve 😀", "The cat sat .", "//", "", "50 % of", ".", "0"]
SENTENCES = [Entry(len(line.split()), line.strip(), f"nw/wsj/{index // 4}") for index, line in enumerate(TEXTS)]
EXAMPLE = example("docs/extending.md", "WordsFirstWriter")["WordsFirstWriter"]


@pytest.fixture(params=[*LAYOUTS, EXAMPLE.layout])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(LAYOUTS, EXAMPLE.layout, EXAMPLE)
    return request.param


def shape_of(*, single: bool = False, dtype: str = "float32") -> FeatureShape:
    words = sum(sentence.length for sentence in SENTENCES)
    return FeatureShape(layers=1 if single else 3, width=8, dtype=dtype, single=single, words=words)


def states_of(index: int, shape: FeatureShape) -> np.ndarray:
    return np.random.default_rng(index).standard_normal(shape.of(SENTENCES[index].length)).astype(shape.dtype)


def write(path: Path, shape: FeatureShape, *, documents: bool = True, **options: Any) -> Path:
    with write_features(path, {"model": "m", "layers": ["a", "b", "c"]}, shape=shape, **options) as writer:
        for index, sentence in enumerate(SENTENCES):
            known = sentence if documents else replace(sentence, document=None)
            writer.add(known, states_of(index, shape))
    return path


def test_the_names_are_those_of_readers_and_writers() -> None:
    assert list(get_args(LayoutName)) == list(LAYOUTS)


@pytest.mark.parametrize("sentence_map", [False, True])
def test_what_is_written_is_read(tmp_path: Path, layout: str, sentence_map: bool) -> None:
    for number, (single, dtype) in enumerate(product((False, True), ("float32", "float16"))):
        shape = shape_of(single=single, dtype=dtype)
        options = {"layout": layout, "sentence_map": sentence_map}
        with FeatureFile(write(tmp_path / f"{number}.h5", shape, **options)) as features:
            assert (features.layout, features.layers, features.width) == (layout, shape.layers, 8)
            assert (features.dtype, features.single) == (dtype, single)
            assert len(features) == len(SENTENCES)
            assert features.attributes["model"] == "m"
            assert features.layer_names == (["0"] if single else ["a", "b", "c"])
            for index in range(len(SENTENCES)):
                array = features[index]
                np.testing.assert_array_equal(array, states_of(index, shape))
                assert array.dtype == dtype
                assert array.flags.c_contiguous
                assert features.lengths[index] == SENTENCES[index].length
            features.check()


def test_words_are_found_where_the_layout_has_them(tmp_path: Path, layout: str) -> None:
    writer = LAYOUTS[layout]
    with FeatureFile(write(tmp_path / "f.h5", shape_of(), layout=layout)) as features:
        assert features.has_map == writer.found_by_words
        if writer.found_by_words:
            last = {tuple(text.split()): index for index, text in enumerate(TEXTS)}
            for text in TEXTS:
                assert features.find(text) == last[tuple(text.split())], "of equal ones the last"
            assert features.find("never seen") is None
    bare = write(tmp_path / "bare.h5", shape_of(), layout=layout, sentence_map=False)
    with FeatureFile(bare) as features, pytest.raises(InputError, match="no map"):
        features.find(["The", "cat"])
    if not writer.needs_documents:
        with FeatureFile(write(tmp_path / "alone.h5", shape_of(), layout=layout, documents=False)) as features:
            features.check()


@pytest.mark.parametrize("change", [{"dtype": "float16"}, {"width": 4}, {"layers": 2}])
def test_states_of_another_shape_or_type_are_not_written(tmp_path: Path, layout: str, change: dict[str, Any]) -> None:
    with (
        pytest.raises(ValueError, match=r"the states are float\d\d \("),
        write_features(tmp_path / "f.h5", {}, shape=shape_of(), layout=layout) as writer,
    ):
        writer.add(SENTENCES[0], states_of(0, replace(shape_of(), **change)))
    assert not (tmp_path / "f.h5").exists()


def test_a_file_that_is_cut_anywhere_is_refused_or_whole_where_it_is_read(tmp_path: Path, layout: str) -> None:
    content = write(tmp_path / "f.h5", shape_of(), layout=layout).read_bytes()
    for size in [*range(0, len(content), len(content) // 60), len(content) - 1]:
        (tmp_path / "cut.h5").write_bytes(content[:size])
        with pytest.raises(InputError, match=r"cut\.h5"), FeatureFile(tmp_path / "cut.h5") as features:
            features.check()


def test_layouts_and_versions_of_later_are_refused(tmp_path: Path, layout: str) -> None:
    path = write(tmp_path / "f.h5", shape_of(), layout=layout)
    changes = [("format_version", 2, "version"), ("layout", "other", "version"), ("layout", [1, 2], "layout")]
    for name, value, named in changes:
        with h5py.File(path, "r+") as file:
            before, file.attrs[name] = file.attrs[name], value
        with pytest.raises(InputError, match=rf"f\.h5.*{named}"):
            FeatureFile(path)
        with h5py.File(path, "r+") as file:
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
