"""Feature writer: a new feature file in any layout, atomic and safe on a disk that fills up."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts import FORMAT_VERSION, LAYOUTS
from elmoc.features.layouts.interface import LayoutOptions, LayoutWriter, SlabWriter
from elmoc.features.layouts.notes import Notes
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_path, refuse_existing, temporary_path


@contextmanager
def write_features(
    path: Path | str,
    attributes: dict[str, Any],
    *,
    shape: FeatureShape,
    layout: str = "allennlp",
    compress: bool = False,
    sentence_map: bool = True,
    sentence_keys: bool = False,
) -> Iterator["FeatureWriter"]:
    """Open a new feature file; it appears under its name only when the block ends well, and is locked until then.

    Args:
        path: the file; it must not exist.
        attributes: strings, numbers and lists of them, which become attributes of the root.
        shape: of all sentences.
        layout: one of `LAYOUTS`.
        compress: pack the numbers with gzip.
        sentence_map: write how sentences are found by their words, where the layout can.
        sentence_keys: in the allennlp layout, let the sentence be the key of its dataset, in place of its number.

    Raises:
        InputError: the file exists already, or is being written by another process; its disk is full; options that do
            not go together.
    """
    if sentence_keys and layout != "allennlp":
        raise InputError(f"sentences can be keys in the allennlp layout only, not in {layout}: leave sentence keys out")
    options = LayoutOptions(shape=shape, compress=compress, sentence_map=sentence_map, sentence_keys=sentence_keys)
    with locked(path):
        refuse_existing(path)
        with atomic_path(path) as partial, temporary_path(path, "notes") as notes, DiskFile(partial) as disk:
            try:
                with _new_file(disk) as file:
                    described = {"layout": layout, "format_version": FORMAT_VERSION, "single": shape.single}
                    keys = {"sentence_keys": True} if sentence_keys else {}
                    for name, value in {**attributes, **described, **keys}.items():
                        file.attrs[name] = value
                    writer = FeatureWriter(LAYOUTS[layout].writer(file, options, Notes(notes), None), shape, disk)
                    yield writer
                    writer.finish()
            finally:
                disk.raise_error()


def _new_file(disk: "DiskFile") -> h5py.File:
    """A file that any HDF5 since 1.8 reads, and that tracks the order of what is in its root.

    In the earliest form of the rest, data begin at multiples of eight bytes, so that they can be mapped into memory.
    """
    creation, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    creation.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)
    access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V18)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    return h5py.File(h5py.h5f.create(b"features", h5py.h5f.ACC_TRUNC, creation, access))


class FeatureWriter:
    """Writes sentences in the order in which they are given; made by `write_features`."""

    def __init__(self, layout: LayoutWriter, shape: FeatureShape, disk: "DiskFile") -> None:
        self._layout, self._shape, self._disk = layout, shape, disk
        self._slab: SlabWriter | None = None
        self.sentences = 0
        """How many sentences are in the file."""

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Add the next sentence and its states: [L', n, 2P], or [n, 2P] where `shape` says single."""
        wanted = self._shape.of(len(sentence.tokens))
        if states.shape != wanted or states.dtype != self._shape.dtype:
            raise ValueError(
                f"states of shape {states.shape} and type {states.dtype}, where {wanted} and {self._shape.dtype} are "
                "expected"
            )
        self._end_slab()
        self._layout.add(sentence, states)
        self._disk.raise_error()
        self.sentences += 1

    def start(self, sentence: Sentence) -> "Slab":
        """Make room for the next sentence, which is put in pieces, in any order; the next `add` or `start` ends it."""
        self._end_slab()
        self._slab = self._layout.start(sentence)
        self._disk.raise_error()
        self.sentences += 1
        return Slab(self._slab, self._disk)

    def finish(self) -> None:
        """Write what follows the last sentence."""
        self._end_slab()
        self._layout.finish()

    def _end_slab(self) -> None:
        if self._slab is not None:
            self._slab.end()
        self._slab = None


class Slab:
    """Room for the states of a sentence that comes in pieces."""

    def __init__(self, slab: SlabWriter, disk: "DiskFile") -> None:
        self._slab, self._disk = slab, disk

    def put(self, start: int, stop: int, columns: slice, states: np.ndarray) -> None:
        """Write words `start` to `stop` in some of the columns: [L', m, columns], or [m, columns]."""
        self._slab.put(start, stop, columns, states)
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
