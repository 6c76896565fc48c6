"""Feature reader: a feature file gives back what was written, and one that is not whole is refused in words."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import LINES, states_of, write_lines


def test_a_view_is_a_part_of_the_file_and_an_array_is_the_readers_own(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "features.h5")
    content = path.read_bytes()
    with FeatureFile(path) as file:
        views = [file.view(index) for index in range(len(file))]
        array = file[0]
    for index, (line, view) in enumerate(zip(LINES, views, strict=True)):
        np.testing.assert_array_equal(view, states_of(index, len(line.split())), "also when the file is closed")
        assert not view.flags.writeable
        assert not view.flags.owndata
    array[:] = 0
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", ["chunks", "compressed", "float64", "big-endian", "mixed", "unaligned", "user block"])
def test_foreign_files_have_the_same_numbers(tmp_path: Path, kind: str) -> None:
    types = {"float64": ["<f8"], "big-endian": [">f4"], "mixed": ["<f4", "<f2", ">f4", "<f8"]}.get(kind, ["<f4"])
    options: dict[str, Any] = {"chunks": {"chunks": (1, 1, 4)}, "compressed": {"compression": "gzip"}}.get(kind, {})
    with h5py.File(tmp_path / "f.h5", "w", userblock_size=1024 if kind == "user block" else 0) as file:
        for index in range(6):
            if kind == "unaligned":
                file[f"odd {index}"] = np.zeros(3, dtype=np.int8)
            states = states_of(index, index + 1).astype(types[index % len(types)])
            file.create_dataset(str(index), data=states, **options)
        offsets = [file[str(index)].id.get_offset() for index in range(6)]
    if kind in ("chunks", "compressed"):
        assert offsets == [None] * 6
    if kind == "unaligned":
        assert any(offset % 4 for offset in offsets)
    with FeatureFile(tmp_path / "f.h5") as features:
        for index in range(6):
            expected = states_of(index, index + 1).astype(types[index % len(types)])
            for array in (features[index], features.view(index)):
                np.testing.assert_array_equal(array, expected)
                assert array.dtype == expected.dtype


def test_foreign_files_without_states(tmp_path: Path) -> None:
    contents: list[Any] = [np.zeros(3), ["The", "cat"], np.float32(3), h5py.Empty("f"), np.zeros((1, 2, 3, 4))]
    for number, content in enumerate(contents):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["0"] = content
        with pytest.raises(InputError, match="cannot be read"):
            FeatureFile(tmp_path / f"{number}.h5")


def test_sentences_from_the_end_and_by_words(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "features.h5")
    arrays = [states_of(index, len(line.split())) for index, line in enumerate(LINES)]
    with FeatureFile(path) as file:
        np.testing.assert_array_equal(file[-1], arrays[-1])
        np.testing.assert_array_equal(file.view(-2), arrays[-2])
        np.testing.assert_array_equal(file[["a", "/", "b/c"]], arrays[1])
        np.testing.assert_array_equal(file["a  / b/c"], arrays[1])
        assert file.find("a /") is None
        with pytest.raises(KeyError):
            file[["never", "seen"]]
        assert file.lengths.tolist() == [len(line.split()) for line in LINES]
