"""HDF5 output: how a feature file is written, which appears whole or not at all.

Datasets are made through HDF5's own functions, with few calls: h5py's take three times
as long.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

from elmoc.errors import InputError
from elmoc.files.writing import atomic_path, refuse_existing


class HdfOutput:
    """A new HDF5 file of arrays of one type.

    file: the file.
    disk: where its bytes go.
    """

    def __init__(self, disk: "DiskFile", dtype: str) -> None:
        self.file = _new_file(disk)
        self.disk = disk
        self._type = h5t.py_create(np.dtype(dtype))
        self._properties = h5p.create(h5p.DATASET_CREATE)
        self._properties.set_obj_track_times(False)
        # Every number is written, so none is filled in before.
        self._properties.set_fill_time(h5d.FILL_TIME_NEVER)
        # In one piece, which can be mapped into memory.
        self._properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)

    def create(
        self, name: str, shape: tuple[int, ...], group: h5py.h5g.GroupID | None = None
    ) -> h5d.DatasetID:
        """An empty array, by default among the members of the root."""
        place = self.file.id if group is None else group
        space = h5s.create_simple(shape)
        return h5d.create(place, name.encode(), self._type, space, self._properties)

    def write(
        self, name: str, array: np.ndarray, group: h5py.h5g.GroupID | None = None
    ) -> None:
        """Write an array, which is contiguous and of the type of the file."""
        dataset = self.create(name, array.shape, group)
        if array.size:
            dataset.write(h5s.ALL, h5s.ALL, array, self._type)

    def write_text(self, name: str, text: str) -> None:
        """Write a dataset of shape (1,) that holds one text of any length."""
        kind = h5py.string_dtype("utf-8")
        self.file.create_dataset(name, (1,), dtype=kind)[0] = text.encode()


@contextmanager
def new_output(path: Path | str, dtype: str) -> Iterator[HdfOutput]:
    """Open a new file; it appears under its name only when the block ends well, and is
    locked until then.

    Raises:
        InputError: the file exists already, or is being written by another process.
        OSError: its disk is full.
    """
    refuse_existing(path)
    with atomic_path(path) as partial, DiskFile(partial, "w+") as disk:
        try:
            output = HdfOutput(disk, dtype)
            with output.file:
                yield output
        finally:
            disk.raise_error()


def converted(states: np.ndarray, dtype: str) -> np.ndarray:
    """The layer states of a sentence in the type of a file.

    Raises:
        InputError: numbers are too large for the type.
    """
    try:
        # NumPy itself would write infinity, and warn.
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        raise InputError(
            f"the layer states are too large for {dtype}: write another type"
        ) from None


class DiskFile(io.FileIO):
    """The file that HDF5 writes to.

    The library crashes the process when a write fails (a full disk), so no write fails.
    The first exception, an interrupt too, is kept for `raise_error`, and what would be
    written after it is thrown away.
    """

    error: BaseException | None = None

    def raise_error(self) -> None:
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and self.error is None:
                rest = rest[super().write(rest) :]
        except BaseException as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file."""
        try:
            return super().truncate(size) if self.error is None else 0
        except BaseException as error:
            self.error = error
            return 0


def _new_file(disk: DiskFile) -> h5py.File:
    """A file that any HDF5 since 1.8 reads, and that tracks the order of the members of
    its root.
    """
    creation = h5p.create(h5p.FILE_CREATE)
    creation.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    access = h5p.create(h5p.FILE_ACCESS)
    # In the earliest form of the rest, data begin at multiples of eight bytes, so that
    # they can be mapped into memory.
    access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V18)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    return h5py.File(h5f.create(b"features", h5f.ACC_TRUNC, creation, access))
