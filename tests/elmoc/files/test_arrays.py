"""Arrays: read only when they are what their header and their caller say."""

import io
from pathlib import Path

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.files.arrays import all_finite, load_array, save_array


def header_of(shape: tuple[int, ...], dtype: str = "<f4", *, fortran: bool = False) -> bytes:
    """A `.npy` header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": fortran, "shape": shape})
    return file.getvalue()


def test_round_trip(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_array(tmp_path / "a.npy", array)
    for mmap in (False, True):
        read = load_array(tmp_path / "a.npy", shape=(None, 4), dtype="float32", mmap=mmap)
        assert (read == array).all()
        assert isinstance(read, np.memmap) == mmap


@pytest.mark.parametrize(
    "content",
    [
        header_of((3, 4)) + bytes(48),
        header_of((3, 5), "<f8") + bytes(120),
        header_of((3, 5), fortran=True) + bytes(60),
        header_of((3, 5)) + bytes(59),
        header_of((10**12, 5)) + bytes(60),
        header_of((-3, 5)) + bytes(60),
        header_of((3, 5), "|O") + bytes(60),
        header_of((3, 5)).replace(b"{", b"(") + bytes(60),
        b"",
        b"PK\3\4" + bytes(100),
    ],
)
def test_what_is_not_expected_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    for mmap in (False, True):
        with pytest.raises(InputError, match=r"a\.npy"):
            load_array(tmp_path / "a.npy", shape=(None, 5), dtype="float32", mmap=mmap)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4"])
def test_all_finite(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmoc.files.arrays._BLOCK_NUMBERS", 5)
    largest = np.finfo(dtype).max
    array = np.array([[0, -0.0, largest, -largest], [1, -1, 2, 3]], dtype=dtype)
    assert all_finite(array)
    assert all_finite(array[:0])
    for bad in (np.nan, -np.nan, np.inf, -np.inf):
        for row in (0, 1):
            changed = array.copy()
            changed[row, 3] = bad
            assert not all_finite(changed)
