"""Feature writer: a new feature file in any layout, whole or not there, and gone on with after a kill."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.features.layout_names import require_layout_of_keys
from elmoc.features.layouts import FORMAT_VERSION, LAYOUTS
from elmoc.features.layouts.interface import LayoutOptions, LayoutWriter, SlabWriter
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.unfinished.changes import Kept
from elmoc.features.unfinished.disk_file import DiskFile
from elmoc.features.unfinished.folder import Progress, UnfinishedFolder
from elmoc.features.unfinished.notes import Notes
from elmoc.files.locks import locked, unfinished_path
from elmoc.files.writing import refuse_existing

NOT_COMPARED = ("command_line", "dump", "training_words")
"""Attributes that may be others when a file is gone on with, or that say what others do."""


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
    resume: bool = False,
) -> Iterator["FeatureWriter"]:
    """Open a new feature file; it appears under its name only when the block ends well, and is locked until then.

    A process that is killed, or a block that ends otherwise, leaves what was written up to the last
    `FeatureWriter.checkpoint`, in a hidden folder beside the file; without a checkpoint, nothing is left. With `resume`
    that is gone on with, to the same file, and without it is refused.

    Args:
        path: the file; it must not exist.
        attributes: strings, numbers and lists of them, which become attributes of the root.
        shape: of all sentences.
        layout: one of `LAYOUTS`.
        compress: pack the numbers with gzip.
        sentence_map: write how sentences are found by their words, where the layout can.
        sentence_keys: let the sentence be the key of its dataset, in place of its number; for layouts whose sentences
            can be found by their words, see `LAYOUT_NAMES`.
        resume: go on with what is left; where nothing is, begin.

    Raises:
        InputError: the file exists already, or is being written by another process or thread; its disk is full;
            options that do not go together; something is left, and not to be resumed, is damaged, or is of another
            model or option.
    """
    require_layout_of_keys(layout, sentence_keys=sentence_keys)
    options = LayoutOptions(shape=shape, compress=compress, sentence_map=sentence_map, sentence_keys=sentence_keys)
    begun = _begun(attributes, options, layout)
    path = Path(path)
    with locked(path), _named(path):
        folder = UnfinishedFolder(path)
        if resume and path.is_file():
            raise InputError(f"{path} is finished already: there is nothing to resume")
        refuse_existing(path)
        if not resume:
            folder.refuse()
        progress = folder.progress(begun) if resume and folder.can_go_on else None
        with folder.opened(progress), DiskFile(folder.file, "r+" if progress else "w+", shown=path) as disk:
            try:
                with _open(disk, folder, progress) as file:
                    if progress is None:
                        _describe(file, attributes, options, layout)
                    writer = FeatureWriter(file, disk, folder, options, progress or Progress(begun=begun), layout)
                    yield writer
                    writer.finish()
                disk.raise_error()
                writer.publish()
            finally:
                disk.raise_error()


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let errors of the operating system name `path`, which the user knows, for what is in the folder."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(str(unfinished_path(path))):
            error.filename = str(path)
        raise


class FeatureWriter:
    """Writes sentences in the order in which they are given; made by `write_features`."""

    sentences: int
    """How many sentences are in the file: at the beginning, those that a killed process has left."""

    def __init__(
        self,
        file: h5py.File,
        disk: DiskFile,
        folder: UnfinishedFolder,
        options: LayoutOptions,
        progress: Progress,
        layout: str,
    ) -> None:
        self._file, self._disk, self._folder = file, disk, folder
        self._shape, self._progress = options.shape, progress
        self._notes = Notes(folder.notes, progress.notes)
        self._layout: LayoutWriter | None = None  # nothing is added to a file that is finished
        if not progress.finished:
            self._layout = LAYOUTS[layout].writer(file, options, self._notes, progress.memory)
        self._slab: SlabWriter | None = None
        self.sentences = progress.sentences

    @property
    def can_go_on(self) -> bool:
        """Whether a later process can go on with the file: there has been a checkpoint."""
        return self._folder.can_go_on

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        """Add the next sentence and its states: [L', n, 2P], or [n, 2P] where `shape` says single."""
        wanted = self._shape.of(len(sentence.tokens))
        if states.shape != wanted or states.dtype != self._shape.dtype:
            raise ValueError(
                f"states of shape {states.shape} and type {states.dtype}, where {wanted} and {self._shape.dtype} are "
                "expected"
            )
        self._next().add(sentence, states)
        self._disk.raise_error()

    def start(self, sentence: Sentence) -> "Slab":
        """Make room for the next sentence, which is put in pieces, in any order.

        The next `add`, `start` or `checkpoint` ends it; it has to be whole by then.
        """
        self._slab = self._next().start(sentence)
        self._disk.raise_error()
        return Slab(self._slab, self._disk)

    def checkpoint(self) -> None:
        """Let a killed process be gone on with from here. Waits until everything is on the disk."""
        self._end_slab()
        if self._layout is not None:
            memory, rewritten = self._layout.memory(), self._layout.rewritten()
            self._file.flush()
            self._disk.raise_error()
            self._record(memory=memory, kept=Kept(start=rewritten.start, stop=rewritten.stop))

    def finish(self) -> None:
        """Write what follows the last sentence."""
        self._end_slab()
        if self._layout is not None:
            self._layout.finish()

    def publish(self) -> None:
        """Give the file, which HDF5 has closed, its name."""
        if self._layout is not None and self._disk.changes is not None:
            self._record(kept=Kept(), finished=True)  # a kill while changes are put into their places costs nothing
        self._folder.publish(self._disk)

    def _record(self, **progress: Any) -> None:
        self._notes.flush(to_disk=True)
        progress = {"sentences": self.sentences, "notes": self._notes.kept(), **progress}
        self._progress = replace(self._progress, **progress)
        self._folder.record(self._disk, self._progress)

    def _next(self) -> LayoutWriter:
        """End what is before the next sentence, and count that."""
        self._end_slab()
        if self._layout is None:
            raise ValueError("the file is finished, and takes no more sentences")
        self.sentences += 1
        return self._layout

    def _end_slab(self) -> None:
        if self._slab is not None:
            self._slab.end()
        self._slab = None


def _begun(attributes: dict[str, Any], options: LayoutOptions, layout: str) -> dict[str, str]:
    """What a file is written from and how, by name, as text that can be compared."""
    compared = {name: value for name, value in attributes.items() if name not in NOT_COMPARED}
    shape = asdict(options.shape)
    begun = {**compared, **shape, **asdict(options), "layout": layout}
    del begun["shape"]
    return {name: json.dumps(value, default=_plain) for name, value in begun.items()}


def _plain(value: Any) -> Any:
    """What JSON has in place of a value that it lacks: Python's own for one of NumPy, else text."""
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return str(plain) if type(plain) is type(value) else plain


def _open(disk: DiskFile, folder: UnfinishedFolder, progress: Progress | None) -> h5py.File:
    """A new file, or what is left of one."""
    if progress is None:
        return new_file(disk)
    folder.keep(disk, progress)
    return h5py.File(h5py.h5f.open(b"features", h5py.h5f.ACC_RDWR, _access(disk, h5py.h5f.LIBVER_V18)))


def new_file(disk: DiskFile, *, version: int = h5py.h5f.LIBVER_V18) -> h5py.File:
    """A file that any HDF5 since `version` (1.8) reads, and that tracks the order of what is in its root.

    In the earliest form of the rest, data begin at multiples of eight bytes, so that they can be mapped into memory.
    """
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)
    return h5py.File(h5py.h5f.create(b"features", h5py.h5f.ACC_TRUNC, creation, _access(disk, version)))


def _access(disk: DiskFile, version: int) -> h5py.h5p.PropFAID:
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, version)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, disk)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    return access


def _describe(file: h5py.File, attributes: dict[str, Any], options: LayoutOptions, layout: str) -> None:
    """Write the attributes of the root."""
    form = {"layout": layout, "format_version": FORMAT_VERSION, "single": options.shape.single}
    keys = {"sentence_keys": True} if options.sentence_keys else {}
    for name, value in {**attributes, **form, **keys}.items():
        file.attrs[name] = value


class Slab:
    """Room for the states of a sentence that comes in pieces."""

    def __init__(self, slab: SlabWriter, disk: DiskFile) -> None:
        self._slab, self._disk = slab, disk

    def put(self, start: int, stop: int, columns: slice, states: np.ndarray) -> None:
        """Write words `start` to `stop` in some of the columns: [L', m, columns], or [m, columns]."""
        self._slab.put(start, stop, columns, states)
        self._disk.raise_error()
