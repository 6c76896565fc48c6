"""HDF5 files: how one is read without a byte of another file, and without allocating
more than it holds, and how arrays are written, also on a full disk.
"""

import io
import math
import mmap
from contextlib import AbstractContextManager
from itertools import accumulate
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import reading
from elmoc.files.compression import require_file
from elmoc.files.writing import NO_LOCKS

# Bytes of an array that is unpacked, or arranged, at once: 40,000 words of the paper's
# layer states. It bounds what a reader allocates, whatever a file says of itself.
MOST_BYTES = 1 << 29
_NUMBERS = (h5py.h5t.INTEGER, h5py.h5t.FLOAT)
# The library crashes on attributes of some other classes (references, lists of any
# length).
_ATTRIBUTE_CLASSES = (h5py.h5t.STRING, h5py.h5t.ENUM, *_NUMBERS)
# Texts of an attribute at most (it has one a layer): all may point to one long text of
# the file.
_MOST_TEXTS = 100


class CheckedFile(AbstractContextManager["CheckedFile"]):
    """An HDF5 file opened for reading, and mapped into memory. Its methods raise
    whatever they find wrong.

    Callers are within `reading(path)`, which names the file. Links and datasets that
    lead to other files are refused, and a dataset is compared with the bytes that the
    file has before it is read.
    """

    def __init__(self, path: Path | str) -> None:
        require_file(path)
        with reading(path), open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            try:
                self.file = h5py.File(path, "r")
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
                self.file = h5py.File(path, "r", locking=False)
            self.root = h5py.h5g.open(self.file.id, b"/")

    def __exit__(self, *_: object) -> None:
        # Arrays that are parts of the mapped file stay good.
        self.file.close()

    def __contains__(self, name: str) -> bool:
        """Whether the root has a member of that name, be it a link."""
        return bool(self.root.links.exists(name.encode()))

    def names(self) -> list[str]:
        """The members of the root, in the order in which they were made if the file
        tracks it, else by name.
        """
        return [name.decode() for name in self.root]

    def attributes(self) -> dict[str, Any]:
        """The attributes of the root: strings, numbers, and lists of them; bytes that
        are not UTF-8 become `\\xff`.
        """
        attributes = {}
        for name in self.file.attrs:
            attribute = self.file.attrs.get_id(name)
            kind = attribute.get_type().get_class()
            is_many = math.prod(attribute.shape or ()) > _MOST_TEXTS
            if kind not in _ATTRIBUTE_CLASSES or (is_many and kind == h5py.h5t.STRING):
                raise ValueError(
                    f"the attribute {name} is neither numbers nor some texts"
                )
            # NumPy's numbers and arrays as Python's.
            value = np.asarray(self.file.attrs[name]).tolist()
            attributes[_plain(name)] = _plain(value)
        return attributes

    def dataset(self, name: str) -> h5py.h5d.DatasetID:
        """The dataset of that path, which is in this file, whole and no link."""
        dataset = h5py.h5d.open(self.root, self.own(name))
        kind = dataset.get_type().get_class()
        item = dataset.get_type().get_size()
        shape = dataset.shape or ()
        is_text = kind == h5py.h5t.STRING and shape == (1,)
        if kind not in _NUMBERS and not is_text:
            raise ValueError(f'"{name}" is neither numbers nor one text')
        if dataset.get_offset() is not None:
            return dataset
        # Its numbers are not in one piece of this file.
        properties = dataset.get_create_plist()
        layout = properties.get_layout()
        if layout == h5py.h5d.VIRTUAL or properties.get_external_count():
            raise ValueError(f'the data of "{name}" are in other files')
        is_chunked = layout == h5py.h5d.CHUNKED
        # Each chunk may be packed, so that chunks are counted and not bytes.
        chunk = properties.get_chunk() if is_chunked else (1,) * len(shape)
        said = math.prod(-(-n // size) for n, size in zip(shape, chunk, strict=True))
        stored = dataset.get_storage_size() // item
        there = dataset.get_num_chunks() if is_chunked else stored
        if said > there or math.prod(chunk) * item > MOST_BYTES:
            raise ValueError(
                f'"{name}" is said to be larger than what is in the file, or than '
                "what is read"
            )
        return dataset

    def stored(self, name: str) -> np.ndarray | h5py.Dataset:
        """What gives the numbers of a dataset by `[()]`, or its rows by `[start:stop]`.

        It is an array, a read-only part of the file mapped into memory, where the
        numbers are there in one piece, in a type of NumPy; else the dataset itself.
        """
        dataset = self.dataset(name)
        offset = dataset.get_offset()
        dtype = dataset.dtype
        # NumPy's type may be another than the file's, e.g. of fewer bits.
        is_same = h5py.h5t.py_create(dtype).equal(dataset.get_type())
        is_numbers = dtype.kind in "fiu" and is_same
        if offset is None or offset % dtype.alignment or not is_numbers:
            return h5py.Dataset(dataset)
        # It is within the file, else NumPy raises an error.
        return np.ndarray(dataset.shape, dtype, buffer=self._content, offset=offset)

    def read(self, name: str) -> np.ndarray:
        """The numbers of a dataset; an error where they would be unpacked to more than
        `MOST_BYTES`.
        """
        found = self.stored(name)
        require_size(found, found.shape[0] if found.shape else 1)
        return np.asarray(found[()])

    def own(self, name: str) -> bytes:
        """The path; an error where a step of it is a link."""
        for step in accumulate(name.split("/"), "{}/{}".format):
            if self.root.links.get_info(step.encode()).type != h5py.h5l.TYPE_HARD:
                raise ValueError(f'"{step}" is a link, which may lead to another file')
        return name.encode()


class HdfOutput:
    """A new HDF5 file of arrays of one type, which tracks the order of the members of
    its root.

    Datasets are made through HDF5's own functions, with few calls: h5py's take three
    times as long.

    file: the file.
    disk: where its bytes go.
    """

    def __init__(self, disk: "DiskFile", dtype: str) -> None:
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        creation.set_link_creation_order(
            h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED
        )
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        # In the earliest form of the rest, data begin at multiples of eight bytes, so
        # that they can be mapped into memory. Any HDF5 since 1.8 reads it.
        access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V18)
        access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
        access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
        file = h5py.h5f.create(b"features", h5py.h5f.ACC_TRUNC, creation, access)
        self.file = h5py.File(file)
        self.disk = disk
        self._type = h5py.h5t.py_create(np.dtype(dtype))
        self._properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        self._properties.set_obj_track_times(False)
        # Every number is written, so none is filled in before.
        self._properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        # In one piece, which can be mapped into memory.
        self._properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)

    def create(self, path: str, shape: tuple[int, ...]) -> h5py.h5d.DatasetID:
        """An empty array."""
        space = h5py.h5s.create_simple(shape)
        return h5py.h5d.create(
            self.file.id, path.encode(), self._type, space, self._properties
        )

    def write(self, path: str, array: np.ndarray) -> None:
        """Write an array, which is contiguous and of the type of the file."""
        dataset = self.create(path, array.shape)
        if array.size:
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, array, self._type)


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


def require_size(numbers: np.ndarray | h5py.Dataset, rows: int) -> None:
    """Raise an error where `rows` of a dataset, which are not mapped into memory, take
    more than `MOST_BYTES`.
    """
    size = rows * math.prod(numbers.shape[1:]) * numbers.dtype.itemsize
    if isinstance(numbers, h5py.Dataset) and size > MOST_BYTES:
        raise ValueError(
            f"{size:,} bytes would be unpacked at once, where {MOST_BYTES:,} are the "
            "most"
        )


def _plain(value: Any) -> Any:
    """A value or lists of values; text for which h5py has bytes, or surrogates, is
    escaped where it is not UTF-8.
    """
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").replace("\0", "\\x00")
    return value
