"""Arrays: how `.npy` files are written whole, and read as the shape and type that are expected."""

from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import reading
from elmoc.files.writing import atomic_path

_BLOCK_NUMBERS = 1 << 18


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.save(file, array)


def load_array(path: Path | str, *, shape: tuple[int | None, ...], dtype: Any, mmap: bool = False) -> np.ndarray:
    """Read a `.npy` file of a known shape (None is any length) and type; memory-mapped read-only with `mmap`.

    Raises `InputError` when it is truncated, damaged, or of another shape or type.
    """
    with reading(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # a map allocates nothing, whatever the header says
        is_like = all(wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True))
        if not is_like or array.dtype != dtype or not array.flags.c_contiguous:
            raise ValueError(f"shape {array.shape} and type {array.dtype}, not {shape} and {np.dtype(dtype)}")
    return array if mmap else np.array(array)


def all_finite(array: np.ndarray) -> bool:
    """Whether no number of a float array is NaN or infinite; reads it in blocks, at the speed of the memory.

    As an integer without its sign, a number that is not finite is at least as large as infinity. NumPy's own test takes
    14 times as long for float16.
    """
    bits = np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)
    infinity = int(np.array(np.inf, array.dtype).view(bits))
    without_sign = bits.type(2 ** (8 * bits.itemsize - 1) - 1)
    flat = array.reshape(-1).view(bits)
    return all(
        int((flat[start : start + _BLOCK_NUMBERS] & without_sign).max()) < infinity
        for start in range(0, len(flat), _BLOCK_NUMBERS)
    )
