"""Arrays: read only when they are what their header and their caller say."""

import io
from pathlib import Path

import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.files.arrays import all_finite, load_array, load_arrays, save_array


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


def test_an_archive_by_the_name_of_an_array(tmp_path: Path) -> None:
    with open(tmp_path / "a.npy", "wb") as file:
        np.savez(file, a=np.zeros(3))
    with pytest.raises(InputError, match=r"a.npy is truncated or not a .npy file \(it is an archive\): make it again"):
        load_array(tmp_path / "a.npy", shape=(3,), dtype="float64")


def test_numbers_in_another_order_or_place(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    np.save(tmp_path / "b.npy", array)
    (tmp_path / "b.npy").write_bytes((tmp_path / "b.npy").read_bytes() + b"\0")
    for name in ("a.npy", "b.npy"):
        with pytest.raises(InputError, match=f"{name} has more in it than its numbers, or these in another order"):
            load_array(tmp_path / name, shape=(2, 3), dtype="float32")


def test_several_arrays_in_one_file(tmp_path: Path) -> None:
    path, shapes = tmp_path / "a.npz", {"mean": (3,), "matrix": (3, 3)}
    mean, matrix = np.ones(3, dtype=np.float32), np.eye(3, dtype=np.float32)
    np.savez(path, mean=mean, matrix=matrix)
    read = load_arrays(path, shapes=shapes, dtype="float32")
    assert {name: array.tolist() for name, array in read.items()} == {"mean": mean.tolist(), "matrix": matrix.tolist()}
    content, messages = path.read_bytes(), []
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 16
        path.write_bytes(damaged)
        try:
            again = load_arrays(path, shapes=shapes, dtype="float32")
        except InputError as error:
            messages.append(str(error))
        else:  # what is changed means nothing, such as a time
            assert all((again[name] == read[name]).all() for name in read)
    assert len(messages) > 20
    assert all(message.startswith(f"{path} is damaged (") for message in messages)
    np.savez_compressed(path, mean=np.zeros(10**7, dtype=np.float32), matrix=matrix)
    with pytest.raises(
        InputError, match=r"it does not hold mean, matrix of the sizes that are expected\): make it again"
    ):
        load_arrays(path, shapes=shapes, dtype="float32")


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
