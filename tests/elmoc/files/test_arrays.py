"""Arrays: read only when they are what their header and their caller say."""

import io
from pathlib import Path

import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.files.arrays import all_finite, load_array, save_array


def header_of(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    """A `.npy` header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_round_trip(tmp_path: Path) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    save_array(tmp_path / "a.npy", array)
    for mmap in (False, True):
        read = load_array(tmp_path / "a.npy", shape=(None, 4), dtype="float32", mmap=mmap)
        assert (read == array).all()
        assert isinstance(read, np.memmap) == mmap


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header_of((3, 4)) + bytes(48), "holds 3 × 4 numbers of type float32, where any × 5 of type float32"),
        (header_of((3, 5), "<f8") + bytes(120), "of type float64, where"),
        (header_of((3, 5)) + bytes(59), "truncated or not a .npy file"),
        (header_of((10**12, 5)) + bytes(60), "truncated or not a .npy file"),
        (header_of((-3, 5)) + bytes(60), "truncated or not a .npy file"),
        (header_of((3, 5), "|O") + bytes(60), "truncated or not a .npy file"),
        (header_of((3, 5)).replace(b"{", b"(") + bytes(60), "truncated or not a .npy file"),
        (b"", "truncated or not a .npy file"),
        (b"PK\3\4" + bytes(100), "truncated or not a .npy file"),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    for mmap in (False, True):
        with pytest.raises(InputError, match=f"a.npy.*{message}.*: make it again"):
            load_array(tmp_path / "a.npy", shape=(None, 5), dtype="float32", mmap=mmap)
    with pytest.raises(InputError, match="does not exist"):
        load_array(tmp_path / "b.npy", shape=(3,), dtype="float32")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_all_finite(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
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
