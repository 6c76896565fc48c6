"""HDF5 files: what is damaged, elsewhere or not there is refused, and nothing larger than the file is allocated."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.commands.inspect import describe
from elmoc.errors import InputError
from elmoc.features.convert import convert_features
from elmoc.features.layouts.interface import Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from tests.elmoc.features.sentences import LINES, shape_of, states_of, write_lines

Change = Callable[[h5py.File], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "features.h5")


def external_link(file: h5py.File) -> None:
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
        other["0"] = states_of(7, 4)
    file["1"] = h5py.ExternalLink("other.h5", "0")


def external_storage(file: h5py.File) -> None:
    raw = Path(file.filename).with_name("raw.bin")
    states_of(7, 4).tofile(raw)
    file.create_dataset("1", (3, 4, 4), "f4", external=[(str(raw), 0, raw.stat().st_size)])


def virtual_dataset(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((3, 4, 4), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "0", (3, 4, 4))
    file.create_virtual_dataset("1", layout)


def sparse(file: h5py.File) -> None:
    file.create_dataset("1", (3, 10**12, 4), "f4", chunks=(3, 100, 4))[:, 5] = 1


def half_of_the_chunks(file: h5py.File) -> None:
    file.create_dataset("1", (3, 4, 4), "f4", chunks=(3, 2, 4))[:, :2] = 1


CHANGES: dict[str, Change] = {
    "external link": external_link,
    "soft link": lambda file: file.__setitem__("1", h5py.SoftLink("/0")),
    "external storage": external_storage,
    "virtual dataset": virtual_dataset,
    "48 TB": sparse,
    "half of the chunks": half_of_the_chunks,
    "integers": lambda file: file.create_dataset("1", data=np.ones((3, 2, 4), "i4")),
    "references": lambda file: file.create_dataset("1", data=np.full((3, 2, 4), file.ref, h5py.ref_dtype)),
    "width": lambda file: file.create_dataset("1", data=states_of(1, 3, width=5)),
    "group": lambda file: file.create_group("1"),
    "not a number": lambda file: file.create_dataset("1", data=np.full((3, 2, 4), np.nan, "f4")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_sentence_that_is_elsewhere_or_not_whole(path: Path, change: Change) -> None:
    with h5py.File(path, "a") as file:
        del file["1"]
        change(file)
    with FeatureFile(path) as features:
        np.testing.assert_array_equal(features[0], states_of(0, 4))
        for read in (lambda: features[1], features.check):
            with pytest.raises(InputError, match=str(path)):
                read()


@pytest.mark.parametrize("change", [external_link, sparse, virtual_dataset])
def test_the_first_sentence_is_looked_at_when_the_file_is_opened(path: Path, change: Change) -> None:
    with h5py.File(path, "a") as file:
        del file["1"], file["0"]
        change(file)
        file.move("1", "0")
    with pytest.raises(InputError, match=str(path)):
        FeatureFile(path)


def test_a_map_that_is_elsewhere(path: Path) -> None:
    with h5py.File(path, "a") as file:
        del file["sentence_to_index"]
        file["sentence_to_index"] = h5py.SoftLink("/0")
    with FeatureFile(path) as features, pytest.raises(InputError, match="link"):
        features.find(["a"])


# What other tools write, and what it is read as.
ODD_ATTRIBUTES: dict[str, tuple[Any, Any]] = {
    "fixed length": (np.bytes_(b"x\xff \xc3\xa9"), "x\\xff é"),
    "letters": (np.array([[b"a", b"b"]]), [["a", "b"]]),
    "strings": (np.array([b"\xff", "é".encode()], h5py.string_dtype()), ["\\xff", "é"]),
    "no strings": (np.array([], h5py.string_dtype()), []),
    "numbers": (np.arange(3), [0, 1, 2]),
}


def test_attributes_of_other_tools_can_be_written_again(path: Path, tmp_path: Path) -> None:
    with h5py.File(path, "a") as file:
        for name, (value, _) in ODD_ATTRIBUTES.items():
            file.attrs.create(name, value, dtype=value.dtype)
        file.attrs["empty"] = h5py.Empty("f4")
        file.attrs["layers"] = np.array([b"0", b"1", b"2"])
    expected = {name: found for name, (_, found) in ODD_ATTRIBUTES.items()} | {"layers": ["0", "1", "2"]}
    convert_features(path, tmp_path / "again.h5", layout="flat")
    for each in (path, tmp_path / "again.h5"):
        with FeatureFile(each) as features:
            assert features.attributes["empty"] == h5py.Empty("f4")
            assert {name: np.asarray(features.attributes[name]).tolist() for name in expected} == expected
            assert dict(describe(features, count_words=False))["layers"].startswith("0, 1, 2: ")


@pytest.mark.parametrize("dtype", [h5py.ref_dtype, h5py.vlen_dtype("i4"), np.dtype([("a", "i4")])])
def test_attributes_of_other_types_are_refused(path: Path, dtype: np.dtype) -> None:
    with h5py.File(path, "a") as file:
        space = h5py.h5s.create_simple((1,))
        h5py.h5a.create(file.id, b"other", h5py.h5t.py_create(dtype, logical=True), space)
    with pytest.raises(InputError, match="other"):
        FeatureFile(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "empty.h5").touch()
    for each in (tmp_path, tmp_path / "pipe.h5", tmp_path / "empty.h5"):
        with pytest.raises(InputError, match=str(each)):
            FeatureFile(each)


def test_a_whole_file_is_checked(path: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    with FeatureFile(path) as features:
        features.check(seen.append)
    assert sum(seen) == len(LINES)
    with write_features(tmp_path / "other.h5", {}, shape=shape_of(states_of(0, 1))) as writer:
        for index, line in enumerate(LINES):
            tokens = line.split() + ["more"] * (index == 2)
            writer.add(Sentence(tokens, line), states_of(index, len(tokens)))
    with FeatureFile(tmp_path / "other.h5") as features, pytest.raises(InputError, match="sentence 2 "):
        features.check()
