"""Arrays: how NumPy arrays are read, checked and written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError, reading
from elmoc.files.writing import atomic_path

# Numbers of an array that are looked at together: they stay in the processor's cache.
_BLOCK_NUMBERS = 1 << 18


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.save(file, array)


def load_array(
    path: Path | str, *, shape: tuple[int | None, ...], dtype: Any, mmap: bool = False
) -> np.ndarray:
    """Read a `.npy` file.

    Args:
        path: the file.
        shape: that it has to have; None is any length.
        dtype: that it has to have.
        mmap: whether it is mapped into memory, for reading.

    Raises:
        InputError: it is truncated, damaged, or of another shape or type.
    """
    with reading(path):
        # A map allocates nothing, whatever the header says.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        check_array("its rows", array, dtype, shape)
        if not array.flags.c_contiguous:
            raise ValueError("its columns, not its rows, are one behind the other")
    return array if mmap else np.array(array)


def check_array(
    name: str, array: np.ndarray, dtype: Any, shape: Sequence[int | None]
) -> tuple[int, ...]:
    """The shape of an array, if it has this type and shape, where None is any length.

    Raises:
        InputError: it has another.
    """
    lengths = zip(shape, array.shape, strict=False)
    fits = all(wanted in (None, found) for wanted, found in lengths)
    if not fits or array.dtype != dtype or array.ndim != len(shape):
        raise InputError(
            f"{name} are {array.dtype} {array.shape}, not {np.dtype(dtype)} {shape}"
        )
    return array.shape


def all_finite(array: np.ndarray) -> bool:
    """Whether no number of a float array is NaN or infinite; it is read in blocks.

    As an integer without its sign, a number that is not finite is at least as large as
    infinity. NumPy's own test takes several times as long for float16.
    """
    bits = np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)
    infinity = int(np.array(np.inf, array.dtype).view(bits))
    without_sign = bits.type(2 ** (8 * bits.itemsize - 1) - 1)
    flat = array.reshape(-1).view(bits)
    return all(
        int((flat[start : start + _BLOCK_NUMBERS] & without_sign).max()) < infinity
        for start in range(0, len(flat), _BLOCK_NUMBERS)
    )
