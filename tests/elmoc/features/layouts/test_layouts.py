"""All layouts: what is written is read again, whole, compressed or put in pieces, and foreign files are known."""

import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.layout_names import LAYOUT_NAMES
from elmoc.features.layouts import LAYOUTS, flat
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features

TEXTS = ["The cat sat .", "  a / b/c  ", "Zürich\u00a0— naïve 😀", "The cat sat .", "//", "", "50 % of", ".", "0"]
SENTENCES = [Sentence(line.split(), line, f"nw/wsj/{index // 4}") for index, line in enumerate(TEXTS)]
WORDS = sum(len(sentence.tokens) for sentence in SENTENCES)
OPTIONS = [
    *({"layout": layout, "compress": compress} for layout, compress in product(LAYOUTS, (False, True))),
    {"layout": "allennlp", "sentence_keys": True},
    {"layout": "allennlp", "sentence_map": False},
]


def shape_of(*, single: bool = False, dtype: str = "float32", words: int | None = None) -> FeatureShape:
    return FeatureShape(layers=1 if single else 3, width=8, dtype=dtype, single=single, words=words)


def states_of(index: int, shape: FeatureShape) -> np.ndarray:
    numbers = np.random.default_rng(index).standard_normal(shape.of(len(SENTENCES[index].tokens)))
    return numbers.astype(shape.dtype)


def write(path: Path, shape: FeatureShape, *, in_pieces: bool = False, **options: Any) -> None:
    with write_features(path, {"model": "m"}, shape=shape, **options) as writer:
        for index, sentence in enumerate(SENTENCES):
            states = states_of(index, shape)
            if in_pieces:
                slab, words = writer.start(sentence), len(sentence.tokens)
                for start in reversed(range(words)):
                    slab.put(start, start + 1, slice(4, 8), states[..., start : start + 1, 4:])
                slab.put(0, words, slice(0, 4), states[..., :4])
            else:
                writer.add(sentence, states)
        assert writer.sentences == len(SENTENCES)


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_written_is_read(tmp_path: Path, options: dict[str, Any], in_pieces: bool) -> None:
    for number, (single, dtype, words) in enumerate(product((False, True), ("float32", "float16"), (None, WORDS))):
        shape = shape_of(single=single, dtype=dtype, words=words)
        write(tmp_path / f"{number}.h5", shape, in_pieces=in_pieces, **options)
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


def test_blocks_of_the_flat_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 64, 100, 200, 1000):
        monkeypatch.setattr(flat, "BLOCK_BYTES", size)
        for words in (None, WORDS):
            path = tmp_path / f"{size}.{words}.h5"
            write(path, shape_of(words=words), layout="flat")
            with FeatureFile(path) as features:
                for index in range(len(SENTENCES)):
                    np.testing.assert_array_equal(features[index], states_of(index, shape_of()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compressed_is_smaller(tmp_path: Path, layout: str) -> None:
    shape = FeatureShape(layers=2, width=64, dtype="float32", single=False)
    for compress in (False, True):
        with write_features(tmp_path / f"{compress}.h5", {}, shape=shape, layout=layout, compress=compress) as writer:
            for index in range(20):
                writer.add(Sentence(["w"] * 30, document=str(index // 5)), np.ones((2, 30, 64), np.float32))
    plain, packed = ((tmp_path / f"{compress}.h5").stat().st_size for compress in (False, True))
    assert packed < plain / 4


def test_a_long_sentence_is_in_several_compressed_chunks(tmp_path: Path) -> None:
    shape = FeatureShape(layers=2, width=16, dtype="float32", single=False)
    states = np.arange(2 * 20_000 * 16, dtype=np.float32).reshape(2, 20_000, 16)
    for layout in LAYOUTS:
        with write_features(tmp_path / layout, {}, shape=shape, layout=layout, compress=True) as writer:
            writer.add(Sentence(["w"] * 20_000, document="d"), states)
        with FeatureFile(tmp_path / layout) as features, h5py.File(tmp_path / layout) as file:
            np.testing.assert_array_equal(features[0], states)
            dataset = file[{"e2e-coref": "d/0", "flat": "states"}.get(layout, "0")]
            assert dataset.id.get_num_chunks() > 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_does_not_grow_with_the_sentences(tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "BLOCK_BYTES", 1 << 16)
    shape = FeatureShape(layers=1, width=2, dtype="float32", single=True)
    states = np.ones((3, 2), np.float32)
    peaks = []
    with write_features(tmp_path / "f.h5", {}, shape=shape, layout=layout, sentence_map=False) as writer:
        for index in range(1500):
            if index in (300, 600):
                tracemalloc.start()
            writer.add(Sentence(["a", "b", f"c{index}"], document="d"), states)
            if index in (599, 1499):
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] + 30_000


def test_wrong_states_are_refused(tmp_path: Path) -> None:
    with write_features(tmp_path / "f.h5", {}, shape=shape_of()) as writer:
        for states in (np.zeros((3, 2, 8)), np.zeros((3, 1, 8), np.float32), np.zeros((2, 8), np.float32)):
            with pytest.raises(ValueError, match="expected"):
                writer.add(Sentence(["a", "b"]), states)
        slab = writer.start(Sentence(["a", "b"]))
        with pytest.raises(ValueError, match="expected for words 1 to 3 of 2"):
            slab.put(1, 3, slice(0, 8), np.zeros((3, 2, 8), np.float32))
        slab.put(0, 1, slice(0, 8), np.zeros((3, 1, 8), np.float32))
        with pytest.raises(ValueError, match="24 numbers of a sentence are missing"):
            writer.add(Sentence([]), np.zeros((3, 0, 8), np.float32))
        slab.put(1, 2, slice(0, 8), np.zeros((3, 1, 8), np.float32))
        writer.add(Sentence([]), np.zeros((3, 0, 8), np.float32))


def test_the_names_are_those_of_readers_and_writers() -> None:
    assert list(LAYOUT_NAMES) == list(LAYOUTS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_known_of_a_layout_by_its_name_is_so(tmp_path: Path, layout: str) -> None:
    traits, sentence = LAYOUT_NAMES[layout], Sentence(["a", "b"])
    try:
        with write_features(tmp_path / "f.h5", {}, shape=shape_of(), layout=layout) as writer:
            writer.add(sentence, np.zeros((3, 2, 8), np.float32))
        needs_documents = False
    except InputError:
        needs_documents = True
    assert needs_documents == traits.needs_documents
    write(tmp_path / "all.h5", shape_of(), layout=layout)
    with FeatureFile(tmp_path / "all.h5") as features:
        assert features.has_map == traits.found_by_words


def test_sentence_keys_are_for_one_layout(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only, not in bilm"):
        write(tmp_path / "f.h5", shape_of(), layout="bilm", sentence_keys=True)
    assert not list(tmp_path.iterdir())


def test_layouts_and_versions_of_later_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", shape_of())
    for name, value in (("format_version", 2), ("layout", "other"), ("layout", [1, 2])):
        with h5py.File(tmp_path / "f.h5", "r+") as file:
            before, file.attrs[name] = file.attrs[name], value
        with pytest.raises(InputError, match="use the elmoc that wrote it"):
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
