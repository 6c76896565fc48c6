"""Arrays: `.npy` files, written whole, and compared with their size before anything is allocated."""

from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_path

_BLOCK_NUMBERS = 1 << 18


def save_array(path: Path | str, array: np.ndarray) -> None:
    """Write a `.npy` file atomically."""
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.save(file, array)


def load_array(
    path: Path | str, *, shape: tuple[int | None, ...], dtype: Any, mmap: bool = False, advice: str = "make it again"
) -> np.ndarray:
    """Read a `.npy` file of a known shape (None is any length) and type; memory-mapped read-only with `mmap`.

    Raises `InputError` with the `advice` when it is missing, truncated, damaged, or of another shape or type.
    """
    require_file(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)  # a map allocates nothing, whatever the header says
    except OSError:
        raise
    except Exception as error:  # the header is Python text, and what it may raise is not documented
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is truncated or not a .npy file ({reason}): {advice}") from None
    lengths = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not isinstance(array, np.memmap) or not lengths or array.dtype != dtype:
        wanted = " × ".join("any" if length is None else f"{length:,}" for length in shape)
        found = " × ".join(f"{length:,}" for length in array.shape)
        raise InputError(
            f"{path} holds {found} numbers of type {array.dtype}, where {wanted} of type {np.dtype(dtype)} are "
            f"expected: {advice}"
        )
    return array if mmap else np.array(array)


def all_finite(array: np.ndarray) -> bool:
    """Whether no number of a float array is NaN or infinite; reads it in blocks, at the speed of the memory."""
    info = np.finfo(array.dtype)
    bits = np.dtype(f"u{info.dtype.itemsize}")
    infinity = int(np.array(np.inf, info.dtype).view(bits))
    without_sign = bits.type(2 ** (info.bits - 1) - 1)
    flat = array.reshape(-1).view(bits)  # without its sign, a number that is not finite is the largest as an integer
    return all(
        int((flat[start : start + _BLOCK_NUMBERS] & without_sign).max()) < infinity
        for start in range(0, len(flat), _BLOCK_NUMBERS)
    )
