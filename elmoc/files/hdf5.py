"""HDF5 files: how one is read without a byte of another file, and without allocating
more than it holds.
"""

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
# Of an attribute, which has one a layer: all of them may be the same long text of the
# file.
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


def require_size(numbers: np.ndarray | h5py.Dataset, rows: int = 1) -> None:
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
