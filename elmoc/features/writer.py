"""Feature writer: a new feature file in any layout, atomic and safe on a disk that fills up."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.features.layouts import LAYOUTS, LayoutWriter
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_path, refuse_existing


@contextmanager
def write_features(
    path: Path | str, attributes: dict[str, Any], *, sentence_map: bool = True, layout: str = "allennlp"
) -> Iterator["FeatureWriter"]:
    """Open a new feature file; it appears under its name only when the block ends well, and is locked until then.

    Args:
        path: the file; it must not exist.
        attributes: strings, numbers and lists of them, which become attributes of the root.
        sentence_map: write how sentences are found by their words, where the layout can.
        layout: one of `LAYOUTS`.
    """
    with locked(path):
        refuse_existing(path)
        with atomic_path(path) as partial, DiskFile(partial) as disk:
            try:
                with h5py.File(disk, "w") as file:
                    for name, value in attributes.items():
                        file.attrs[name] = value
                    writer = LAYOUTS[layout].writer(file, sentence_map)
                    yield FeatureWriter(writer, disk)
                    writer.finish()
            finally:
                disk.raise_error()


class FeatureWriter:
    """Writes sentences in the order in which they are given; made by `write_features`."""

    def __init__(self, layout: LayoutWriter, disk: "DiskFile") -> None:
        self._layout = layout
        self._disk = disk

    def add(self, line: str, states: np.ndarray) -> None:
        """Add the next sentence: its line of text and its array, float32 or float16."""
        self._layout.add(line, states)
        self._disk.raise_error()


class DiskFile(io.FileIO):
    """The file that HDF5 writes to. HDF5 crashes the process when a write fails (a full disk), so none ever does.

    The first exception is kept for `raise_error`, an interrupt too, and what would be written after it is thrown away.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.error: BaseException | None = None

    def raise_error(self) -> None:
        """Raise what went wrong in a write, if anything did."""
        if isinstance(self.error, OSError):
            self.error.filename = str(self.name)
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        with self._kept():
            while self.error is None and len(rest):
                rest = rest[super().write(rest) :]
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size of the file."""
        with self._kept():
            if self.error is None:
                super().truncate(size)
        return size or 0

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.error = self.error or error
