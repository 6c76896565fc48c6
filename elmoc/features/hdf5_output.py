"""HDF5 output: how the arrays of a feature file are written, also on a full disk.

Datasets are made through HDF5's own functions, with few calls: h5py's take three times
as long.
"""

import io
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t


class HdfOutput:
    """A new HDF5 file of arrays of one type, which tracks the order of the members of
    its root.

    file: the file.
    disk: where its bytes go.
    """

    def __init__(self, disk: "DiskFile", dtype: str) -> None:
        creation = h5p.create(h5p.FILE_CREATE)
        creation.set_link_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
        access = h5p.create(h5p.FILE_ACCESS)
        # In the earliest form of the rest, data begin at multiples of eight bytes, so
        # that they can be mapped into memory. Any HDF5 since 1.8 reads it.
        access.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_V18)
        access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        file = h5f.create(b"features", h5f.ACC_TRUNC, creation, access)
        self.file = h5py.File(file)
        self.disk = disk
        self._type = h5t.py_create(np.dtype(dtype))
        self._properties = h5p.create(h5p.DATASET_CREATE)
        self._properties.set_obj_track_times(False)
        # Every number is written, so none is filled in before.
        self._properties.set_fill_time(h5d.FILL_TIME_NEVER)
        # In one piece, which can be mapped into memory.
        self._properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)

    def create(self, path: str, shape: tuple[int, ...]) -> h5d.DatasetID:
        """An empty array."""
        space = h5s.create_simple(shape)
        return h5d.create(
            self.file.id, path.encode(), self._type, space, self._properties
        )

    def write(self, path: str, array: np.ndarray) -> None:
        """Write an array, which is contiguous and of the type of the file."""
        dataset = self.create(path, array.shape)
        if array.size:
            dataset.write(h5s.ALL, h5s.ALL, array, self._type)


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
