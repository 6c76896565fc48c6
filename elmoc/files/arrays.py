"""Arrays: `.npy` files, written whole, and compared with their size before anything is allocated."""

import math
import os
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError, reason
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_path

_BLOCK_NUMBERS = 1 << 18
_MOST_HEADER_BYTES = 1 << 12


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial:
        write_array(partial, array)


def write_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file in place, into a directory that is written as a whole.

    The same bytes as NumPy's own writer, which does not say of a full disk that it is full.
    """
    array = np.ascontiguousarray(array)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


def load_arrays(
    path: Path | str, *, shapes: Mapping[str, tuple[int, ...]], dtype: Any, advice: str = ""
) -> dict[str, np.ndarray]:
    """Read a `.npz` file of floating-point arrays of known names, shapes and one type.

    Raises `InputError` with the `advice` when it is missing, damaged, or holds others, or numbers that are not finite.
    """
    require_file(path)
    expected = {name: np.dtype(dtype).itemsize * math.prod(shape) for name, shape in shapes.items()}
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {member.filename.removesuffix(".npy"): member.file_size for member in archive.infolist()}
        if sizes.keys() != expected.keys() or any(
            sizes[name] > size + _MOST_HEADER_BYTES for name, size in expected.items()
        ):
            raise ValueError(f"it does not hold {', '.join(shapes)} of the sizes that are expected")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in shapes}
        for name, array in arrays.items():
            if array.shape != shapes[name] or array.dtype != dtype:
                raise ValueError(f"{name} has the shape {array.shape} and the type {array.dtype}")
            if not all_finite(array):
                raise ValueError(f"{name} has numbers that are not finite")
    except Exception as error:  # what a damaged archive or header may raise is not documented
        if isinstance(error, OSError) and error.filename:
            raise
        raise InputError(f"{path} is damaged ({reason(error)})") from None
    return arrays


def load_array(
    path: Path | str, *, shape: tuple[int | None, ...], dtype: Any, mmap: bool = False, advice: str = ""
) -> np.ndarray:
    """Read a `.npy` file of a known shape (None is any length) and type; memory-mapped read-only with `mmap`.

    Raises `InputError` with the `advice` when it is missing, truncated, damaged, or of another shape or type.
    """
    require_file(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # a map allocates nothing, whatever the header says
        if not isinstance(array, np.memmap):
            raise ValueError("it is an archive")
    except OSError:
        raise
    except Exception as error:  # the header is Python text, and what it may raise is not documented
        raise InputError(f"{path} is truncated or not a .npy file ({reason(error)})") from None
    lengths = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not lengths or array.dtype != dtype:
        wanted = " × ".join("any" if length is None else f"{length:,}" for length in shape)
        found = " × ".join(f"{length:,}" for length in array.shape)
        raise InputError(
            f"{path} holds {found} numbers of type {array.dtype}, where {wanted} of type {np.dtype(dtype)} are expected"
        )
    if not array.flags.c_contiguous or array.offset + array.nbytes != os.path.getsize(path):
        raise InputError(f"{path} has more in it than its numbers, or these in another order")
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
