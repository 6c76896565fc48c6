"""HDF5 files, opened so that damage is an `InputError`, and so that no byte of another file is read.

The HDF5 library crashes or runs for ever on some damaged files, and follows links into other files. Both are kept from
it here, as far as can be: it reads through `_CheckedContent`, and `CheckedFile` opens nothing but datasets that lie in
the file itself and are there whole.
"""

import io
import math
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError, reason, shortened
from elmoc.files.text import require_file
from elmoc.files.writing import human_bytes

MOST_COMPRESSION = 1032
"""How many times larger than its stored bytes a dataset may be: deflate, the usual filter, does no better."""
_HEAP = b"GCOL\x01"
"""The start of a global heap collection, where HDF5 keeps strings of variable length: signature and version."""
_HEAP_BYTES = struct.Struct("<8xQ")  # signature, version and padding; size of the collection
_HEAP_OBJECT = struct.Struct("<H6xQ")  # index (0 for free space), references and padding; size
_ATTRIBUTE_CLASSES = (h5py.h5t.STRING, h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.ENUM)
_DAMAGE = (OSError, RuntimeError, KeyError, IndexError, ValueError, TypeError, OverflowError, MemoryError)
"""What h5py makes of the errors of the library, which has some for every part of a file."""


class CheckedFile(h5py.File):
    """An HDF5 file opened for reading, and its content as a memory map of it.

    Raises `InputError` with the `advice` for a file that is missing, truncated or foreign. Whatever else is wrong is
    found when it is read, which is done within `damage`.
    """

    def __init__(self, path: Path | str, *, advice: str) -> None:
        if not os.path.lexists(path):
            raise InputError(f"{path} does not exist: {advice}")
        require_file(path)
        self.path = str(path)
        self.advice = advice
        self._with_rows: dict[str, h5py.Dataset | np.ndarray] = {}
        self._last_type: tuple[h5py.h5t.TypeID, np.dtype | None] | None = None
        with self.damage("is not a whole HDF5 file"), open(path, "rb") as file:
            self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            super().__init__(_CheckedContent(self.content), "r")
            if self.id.get_create_plist().get_sizes() != (8, 8):
                raise ValueError("its addresses have not 8 bytes")

    @contextmanager
    def damage(self, what: str) -> Iterator[None]:
        """Let whatever the library finds wrong in the block be an `InputError`: the path, `what` and the reason.

        Errors of the operating system, such as a missing permission, are no damage, and stay what they are.
        """
        try:
            yield
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno:
                error.filename = error.filename or self.path
                raise
            raise InputError(f"{self.path} {what} ({reason(error)}): {self.advice}") from None

    def attributes(self) -> dict[str, Any]:
        """The attributes of the root: strings and numbers (of at most 64 bits), and arrays of them.

        Text and names have bytes that are not UTF-8 as `\\xff`. Attributes of another type are refused, since the
        library crashes on some.
        """
        attributes: dict[str, Any] = {}
        with self.damage("has attributes that are damaged"):
            for name in self.attrs:
                if self.attrs.get_id(name).get_type().get_class() not in _ATTRIBUTE_CLASSES:
                    raise ValueError(f"{_text(name)} is neither text nor numbers")
                attributes[_text(name)] = _plain(self.attrs[name])
        return attributes

    def __contains__(self, name: object) -> bool:
        """Whether there is anything of that name, be it a link."""
        return self.id.links.exists(str(name).encode())

    def __getitem__(self, name: str) -> h5py.Dataset | h5py.Group:
        """The dataset of that name (see `dataset`), or the root, whose attributes h5py takes from there."""
        return super().__getitem__(name) if name == "/" else h5py.Dataset(self.dataset(name))

    def external_link(self, name: str) -> tuple[str, str]:
        """The file and the object in it that the external link of that name says; an error of `damage` if it is none.

        Neither is opened.
        """
        links = self.id.links
        if links.get_info(name.encode()).type != h5py.h5l.TYPE_EXTERNAL:
            raise ValueError(f'"{name}" is no link to a part')
        file, target = links.get_val(name.encode())
        return os.fsdecode(file), target.decode()

    def members(self, name: str) -> int:
        """How many members a group has; an error of `damage` unless it is in this file, and no link."""
        self._require_here(name)
        return int(h5py.h5g.open(self.id, name.encode()).get_num_objs())

    def dataset(self, name: str) -> h5py.h5d.DatasetID:
        """The dataset of that name; an error of `damage` unless it is in this file, whole, and no link."""
        return self._stored(name)[0]

    def array(self, name: str) -> np.ndarray:
        """The numbers of a dataset (see `dataset`): a part of `content`, or a copy.

        They are copied when they are in chunks, not aligned, or of a type that NumPy does not have.
        """
        dataset, shape, kind, offset = self._stored(name)
        dtype = self._numpy_type(kind)
        if offset is None or dtype is None or offset % dtype.alignment:
            return h5py.Dataset(dataset)[()]
        return np.ndarray(shape, dtype, buffer=self.content, offset=offset)

    def rows(self, name: str, start: int | None = None, stop: int | None = None) -> np.ndarray:
        """The rows of a dataset, or all of it, as `array` has them; of one in chunks no more than these are read.

        A dataset of which rows are read is looked at once.
        """
        if start is None:
            return self.array(name)
        if name not in self._with_rows:
            dataset, _, _, offset = self._stored(name)
            self._with_rows[name] = h5py.Dataset(dataset) if offset is None else self.array(name)
        return self._with_rows[name][start:stop]

    def _numpy_type(self, kind: h5py.h5t.TypeID) -> np.dtype | None:
        """The type of NumPy with the same bytes; None where there is none."""
        if self._last_type is None or not kind.equal(self._last_type[0]):
            dtype = kind.dtype
            same = dtype.kind in "fiu" and h5py.h5t.py_create(dtype).equal(kind)
            self._last_type = kind, dtype if same else None
        return self._last_type[1]

    def _stored(self, name: str) -> tuple[h5py.h5d.DatasetID, tuple[int, ...], h5py.h5t.TypeID, int | None]:
        """A dataset, its shape, its type, and where its numbers are (None where they are not in one piece).

        An error of `damage` unless all that it says it has is in this file.
        """
        self._require_here(name)
        dataset = h5py.h5d.open(self.id, name.encode())
        shape, kind, offset = dataset.shape, dataset.get_type(), dataset.get_offset()
        stored = dataset.get_storage_size()
        size, most = math.prod(shape) * kind.get_size(), stored
        if offset is None:  # the data are not in one part of this file
            most = self._most_bytes(name, dataset, shape, stored)
        if size and not (size <= most and (offset or 0) + stored <= len(self.content)):
            raise ValueError(f'"{name}" says that it has {human_bytes(size)}, which the file does not hold')
        return dataset, shape, kind, offset

    def _require_here(self, name: str) -> None:
        links = self.id.links
        for part in accumulate(name.split("/"), "{}/{}".format) if "/" in name else (name,):
            if links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
                raise ValueError(f'"{shortened(part)}" is a link, which may lead to another file')

    def _most_bytes(self, name: str, dataset: h5py.h5d.DatasetID, shape: tuple[int, ...], stored: int) -> int:
        """The most bytes that a dataset which is not in one piece may have; an error if they are in other files."""
        properties = dataset.get_create_plist()
        layout = properties.get_layout()
        if layout == h5py.h5d.VIRTUAL or properties.get_external_count():
            raise ValueError(f'the data of "{name}" are in other files')
        if layout != h5py.h5d.CHUNKED:
            return stored
        chunks = (-(-length // chunk) for length, chunk in zip(shape, properties.get_chunk(), strict=True))
        return MOST_COMPRESSION * stored if math.prod(chunks) == dataset.get_num_chunks() else 0


def _plain(value: Any) -> Any:
    """The value of an attribute as one that can be written again."""
    if isinstance(value, (str, bytes)):
        return _text(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "SO":
        return np.array(list(map(_text, value.flat)), dtype=h5py.string_dtype()).reshape(value.shape)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f" and value.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            return value.astype(np.float64)
    return value


def _text(text: str | bytes) -> str:
    """Text of an HDF5 file, where h5py has bytes or surrogates for what is not UTF-8."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return content.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


class _CheckedContent(io.RawIOBase):
    """What the library reads: the content of a file, in which collections of strings that are damaged are zeros.

    The library reads such a collection without looking at its bounds. Zeros in its place it refuses.
    """

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._position = 0
        self._checked: dict[int, bool] = {}

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read; the library knows the start and the end."""
        self._position = offset if whence == io.SEEK_SET else len(self._content) + offset
        return self._position

    def tell(self) -> int:
        """The position of the next read."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`, with zeros behind the end of the file."""
        start, end = self._position, self._position + len(buffer)
        found = self._content[start:end] if self._is_safe(start, end) else b""
        buffer[:] = found.ljust(len(buffer), b"\0")
        self._position = end
        return len(buffer)

    def _is_safe(self, start: int, end: int) -> bool:
        around = len(_HEAP) - 1
        heap = self._content.find(_HEAP, max(0, start - around), end + around)
        while heap >= 0:
            if heap not in self._checked:
                self._checked[heap] = _is_whole_heap(self._content, heap)
            if not self._checked[heap]:
                return False
            heap = self._content.find(_HEAP, heap + 1, end + around)
        return True


def _is_whole_heap(content: mmap.mmap, start: int) -> bool:
    """Whether the objects of the heap collection at `start` follow each other up to its end, which the file has."""
    if start + _HEAP_BYTES.size > len(content):
        return False
    (size,) = _HEAP_BYTES.unpack_from(content, start)
    position, end = start + _HEAP_BYTES.size, start + size
    if end > len(content):
        return False
    while position + _HEAP_OBJECT.size <= end:
        index, object_size = _HEAP_OBJECT.unpack_from(content, position)
        step = object_size if index == 0 else _HEAP_OBJECT.size + -(-object_size // 8) * 8
        if step < _HEAP_OBJECT.size:
            return False
        position += step
    return position <= end
