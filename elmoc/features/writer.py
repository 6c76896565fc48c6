"""Feature writer: how a new feature file is written in any layout, whole or not at all."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts import FORMAT_VERSION, LAYOUTS
from elmoc.features.layouts.interface import FeatureShape, LayoutWriter, Sentence
from elmoc.files.arrays import all_finite
from elmoc.files.writing import atomic_path, refuse_existing


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
        sentence_keys: let the sentence be the key of its dataset, in place of its number; for layouts whose sentences
            can be found by their words.

    Raises:
        InputError: the file exists already, or is being written by another process; its disk is full; options that do
            not go together.
    """
    if sentence_keys and not LAYOUTS[layout].writer.found_by_words:
        raise InputError(f"sentences cannot be keys in the {layout} layout: leave sentence keys out")
    refuse_existing(path)
    form = {"layout": layout, "format_version": FORMAT_VERSION, "single": shape.single}
    keys = {"sentence_keys": True} if sentence_keys else {}
    with atomic_path(path) as partial, _DiskFile(partial, "w+") as disk:
        try:
            with _new_file(disk) as file:
                for name, value in {**attributes, **form, **keys}.items():
                    file.attrs[name] = value
                options = {"compress": compress, "by_map": sentence_map, "by_keys": sentence_keys}
                writer = LAYOUTS[layout].writer(file, shape, **options)
                yield FeatureWriter(writer, shape, disk)
                writer.finish()
        finally:
            disk.raise_error()


class _DiskFile(io.FileIO):
    """The file that HDF5 writes to. The library crashes the process when a write fails (a full disk), so none does.

    The first exception, an interrupt too, is kept for `raise_error`, and what would be written after it is thrown away.
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


class FeatureWriter:
    """Writes sentences in the order in which they are given; made by `write_features`."""

    def __init__(self, layout: LayoutWriter, shape: FeatureShape, disk: _DiskFile) -> None:
        self._layout, self._shape, self._disk = layout, shape, disk

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Add the next sentence and its states: [L', n, 2P], or [n, 2P] where the shape says single, in its type."""
        wanted = self._shape.of(len(sentence.tokens))
        if states.shape != wanted or states.dtype != self._shape.dtype:  # HDF5 would read past their end
            raise ValueError(f"the states are {states.dtype} {states.shape}, not {self._shape.dtype} {wanted}")
        self._layout.add(sentence, states)
        self._disk.raise_error()


def converted(states: np.ndarray, dtype: str) -> np.ndarray:
    """The layer states of a sentence in the type of the file.

    Numbers that are too large for it or not finite are an `InputError`.
    """
    if not all_finite(states):
        raise InputError("the layer states are not finite: the model or its word vectors are damaged, get them again")
    try:
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        raise InputError(f"the layer states are too large for {dtype}: write another type") from None


def _new_file(disk: _DiskFile) -> h5py.File:
    """A file that any HDF5 since 1.8 reads, and that tracks the order of what is in its root.

    In the earliest form of the rest, data begin at multiples of eight bytes, so that they can be mapped into memory.
    """
    creation, access = h5py.h5p.create(h5py.h5p.FILE_CREATE), h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    creation.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)
    access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V18)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    return h5py.File(h5py.h5f.create(b"features", h5py.h5f.ACC_TRUNC, creation, access))
