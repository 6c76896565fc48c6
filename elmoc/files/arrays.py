"""Arrays: how `.npy` files are written whole, and read as the shape and type that are expected."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError, reading
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_path

_BLOCK_NUMBERS = 1 << 18


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.save(file, array)


def load_arrays(path: Path | str, *, shapes: Mapping[str, tuple[int, ...]], dtype: Any) -> dict[str, np.ndarray]:
    """Read a `.npz` file of floating-point arrays of known names, shapes and one type.

    Raises `InputError` when it is damaged, or holds others, or numbers that are not finite.
    """
    require_file(path)
    with reading(path), np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    if arrays.keys() != shapes.keys():
        raise InputError(f"{path} holds {', '.join(arrays)}, where {', '.join(shapes)} are expected")
    for name, array in arrays.items():
        if array.shape != shapes[name] or array.dtype != dtype or not all_finite(array):
            raise InputError(f"{path}: {name} has another shape or type, or numbers that are not finite")
    return arrays


def load_array(path: Path | str, *, shape: tuple[int | None, ...], dtype: Any, mmap: bool = False) -> np.ndarray:
    """Read a `.npy` file of a known shape (None is any length) and type; memory-mapped read-only with `mmap`.

    Raises `InputError` when it is truncated, damaged, or of another shape or type.
    """
    require_file(path)
    with reading(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # a map allocates nothing, whatever the header says
        lengths = len(array.shape) == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
    if not lengths or array.dtype != dtype or not array.flags.c_contiguous:
        raise InputError(
            f"{path} holds numbers of shape {array.shape} and type {array.dtype}, where {shape} and {np.dtype(dtype)} "
            "are expected"
        )
    return array if mmap else np.array(array)


def all_finite(array: np.ndarray) -> bool:
    """Whether no number of a float array is NaN or infinite; reads it in blocks, at the speed of the memory."""
    bits, infinity, without_sign = _bits(array.dtype)
    flat = array.reshape(-1).view(bits)  # without its sign, a number that is not finite is the largest as an integer
    return all(
        int((flat[start : start + _BLOCK_NUMBERS] & without_sign).max()) < infinity
        for start in range(0, len(flat), _BLOCK_NUMBERS)
    )


@cache
def _bits(dtype: np.dtype) -> tuple[np.dtype, int, np.unsignedinteger]:
    """The integers of as many bits as a float type; as such, infinity, and all bits but that of the sign."""
    bits = np.dtype(f"u{dtype.itemsize}").newbyteorder(dtype.byteorder)
    return bits, int(np.array(np.inf, dtype).view(bits)), bits.type(2 ** (8 * dtype.itemsize - 1) - 1)
