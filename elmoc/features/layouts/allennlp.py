"""How is a feature file laid out (the `allennlp` layout), written, and read?

One contiguous dataset of float32 (or float16) a sentence, its key the line number as a string from "0":
`(L + 1, n, 2P)` for all layers, `(n, 2P)` for one. A dataset `sentence_to_index`, shape (1,), holds one JSON object
{stripped line: "index"} (of duplicate lines the last index). Everything else is in the attributes of the root, so that
iterating over the keys finds sentences and the map alone.
"""

import io
import json
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.files import atomic_path, refuse_existing

MAP_KEY = "sentence_to_index"


class FeatureFile:
    """Reads a feature file: `file[i]` is line i's array, `file.find(words)` the index of a sentence.

    `dtype` is the type of its numbers. Can be used as a context manager; several processes may read one file. Raises
    `InputError` for a missing, truncated or foreign file.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise InputError(f"{path} does not exist: write it with `elmoc dump-features`")
        try:
            self._file = h5py.File(path, "r")
        except OSError as error:
            raise InputError(
                f"{path} is not a whole HDF5 file ({error}): write it again with `elmoc dump-features`"
            ) from None
        self.attributes: dict[str, Any] = dict(self._file.attrs)
        self._length = len(self._file) - (MAP_KEY in self._file)
        first = self._file.get("0")
        if not isinstance(first, h5py.Dataset) or first.dtype.kind != "f" or first.ndim not in (2, 3):
            raise InputError(
                f'{path} has no dataset "0" of numbers, (layers, words, width) or (words, width): it is not a feature '
                "file in the allennlp layout"
            )
        self.dtype = first.dtype
        self._type = first.id.get_type()
        with open(path, "rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        """The number of sentences."""
        return self._length

    def __getitem__(self, index: int) -> np.ndarray:
        """[L + 1, n, 2P], or [n, 2P] when the file holds one layer, in the type that the file holds."""
        return np.array(self.view(index))

    def view(self, index: int) -> np.ndarray:
        """The same without a copy, read-only: a part of the file itself, mapped into memory.

        It is read when it is used, into memory that all processes share (the system's page cache), and stays good when
        the `FeatureFile` is closed. Of datasets in chunks (foreign files, compressed ones) it is a copy.
        """
        if not 0 <= index < self._length:
            raise IndexError(f"sentence {index} of {self._length}")
        try:
            dataset = h5py.h5d.open(self._file.id, str(index).encode())
            offset = dataset.get_offset()  # None when the data are in chunks, or there are none
            if offset is None or not dataset.get_type().equal(self._type) or offset % self.dtype.alignment:
                return self._file[str(index)][()]
        except (KeyError, OSError) as error:
            raise InputError(f"{self.path}: sentence {index} cannot be read ({error}): write it again") from None
        return np.ndarray(dataset.shape, self.dtype, buffer=self._content, offset=offset)

    @property
    def layers(self) -> int:
        """How many layers each sentence has (1 for a file of the top or average layer)."""
        shape = self._file["0"].shape
        return shape[0] if len(shape) == 3 else 1

    @property
    def width(self) -> int:
        """The width of the vectors, 2P."""
        return self._file["0"].shape[-1]

    def find(self, words: Sequence[str]) -> int | None:
        """The index of the sentence with these words, or None; the file needs its sentence map."""
        return self._sentences.get(" ".join(words))

    @cached_property
    def _sentences(self) -> dict[str, int]:
        if MAP_KEY not in self._file:
            raise InputError(
                f"{self.path} has no {MAP_KEY} map, by which sentences are found: write it again without "
                "--forget-sentences"
            )
        try:
            sentences = json.loads(self._file[MAP_KEY][0])
        except (ValueError, TypeError, IndexError, OSError) as error:
            raise InputError(f"{self.path}: the {MAP_KEY} map is damaged ({error}): write the file again") from None
        if not isinstance(sentences, dict):
            raise InputError(
                f"{self.path}: the {MAP_KEY} map is not a JSON object of sentences and their indices: write the file "
                "again"
            )
        return {(words := " ".join(line.split())): self._checked(index, words) for line, index in sentences.items()}

    def _checked(self, index: Any, words: str) -> int:
        text = str(index)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < self._length):
            shown = words if len(words) <= 80 else words[:79] + "…"
            raise InputError(
                f'{self.path}: the {MAP_KEY} map gives the sentence "{shown}" the index {json.dumps(index)}, but the '
                f"file has 0 to {self._length - 1}: write it again"
            )
        return int(text)

    def close(self) -> None:
        """Close the file; views of it stay good."""
        self._file.close()

    def __enter__(self) -> "FeatureFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FeatureWriter:
    """Writes sentences in the order in which they are given; made by `write_features`."""

    def __init__(self, file: h5py.File, disk: "DiskFile") -> None:
        self._file = file
        self._disk = disk
        self._sentences: dict[str, str] = {}
        self._count = 0

    def add(self, line: str, states: np.ndarray) -> None:
        """Add the next sentence: its line of text and its array, float32 or float16."""
        self._file.create_dataset(str(self._count), data=states)
        self._disk.raise_error()
        self._sentences[line.strip()] = str(self._count)
        self._count += 1

    def write_map(self) -> None:
        """Write the `sentence_to_index` dataset."""
        dataset = self._file.create_dataset(MAP_KEY, (1,), dtype=h5py.string_dtype("utf-8"))
        dataset[0] = json.dumps(self._sentences, ensure_ascii=False)


class DiskFile(io.RawIOBase):
    """The file that HDF5 writes to. HDF5 crashes the process when a write fails (a full disk), so none ever does.

    The first error is kept for `raise_error`, and what would be written after it is thrown away.
    """

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w+b", buffering=0)  # noqa: SIM115 (closed by close)
        self.error: OSError | None = None

    def raise_error(self) -> None:
        """Raise what went wrong in a write, if anything did."""
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while self.error is None and len(rest):
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file."""
        try:
            if self.error is None:
                self._file.truncate(size)
        except OSError as error:
            self.error = error
        return size or 0

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` as far as the file goes."""
        return self._file.readinto(buffer)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


@contextmanager
def write_features(
    path: Path | str, attributes: dict[str, Any], *, sentence_map: bool = True
) -> Iterator[FeatureWriter]:
    """Open a new feature file; it appears under its name only when the block ends well.

    `attributes` (strings, numbers, lists of them) become attributes of the root.
    """
    refuse_existing(path)
    with atomic_path(path) as partial, DiskFile(partial) as disk:
        try:
            with h5py.File(disk, "w") as file:
                for name, value in attributes.items():
                    file.attrs[name] = value
                writer = FeatureWriter(file, disk)
                yield writer
                if sentence_map:
                    writer.write_map()
        finally:
            disk.raise_error()
