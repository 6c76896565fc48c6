"""Joining: one feature file of the parts that several processes have written, by links to them or with all in it."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts.allennlp import MAP_KEY
from elmoc.features.layouts.datasets import plain_properties
from elmoc.features.layouts.flat import BLOCK_BYTES, DOCUMENTS, OFFSETS, STATES
from elmoc.features.layouts.interface import Member
from elmoc.features.linked import parts_folder
from elmoc.features.links import (
    OF_A_DUMP,
    Part,
    attribute_difference,
    joined_documents,
    joined_map,
    joined_offsets,
    joined_sizes,
    members,
    rows_of,
)
from elmoc.features.stored import PART_SENTENCES, PARTS, StoredSentences, open_stored
from elmoc.features.unfinished.disk_file import DiskFile
from elmoc.features.writer import new_file
from elmoc.files.locks import locked
from elmoc.files.writing import atomic_path, refuse_existing, require_space

_LINK_BYTES = 200
"""The most that a link takes, with its share of the group."""


def join_features(parts: Sequence[Path], output: Path | str, *, merge: bool) -> None:
    """Make the feature file `output` of finished ones: the sentences of the first, then those of the second, …

    Args:
        parts: feature files of one layout, with numbers of one type and the same attributes but for the command line
            and what was dumped. They have to lie in `parts_folder(output)`, unless they are merged.
        output: the file; it must not exist.
        merge: put everything into it, compressed numbers as they are, and remove the parts; else it has links to them.

    Raises:
        InputError: no parts, or some that do not belong together, or are damaged; a document that is in two of them; a
            disk without room.
    """
    output = Path(output)
    with locked(output), ExitStack() as stack:
        refuse_existing(output)
        opened = _open_parts(parts, output, merge, stack)
        joined_documents(opened)  # raises the error of a document that is in two
        attributes = dict(opened[0].sentences.attributes)
        for name in OF_A_DUMP & attributes.keys():
            if any(part.sentences.attributes.get(name) != attributes[name] for part in opened):
                del attributes[name]
        if merge:
            require_space(output, sum(os.path.getsize(path) for path in parts))
        else:
            require_space(output, _LINK_BYTES * sum(len(part.sentences) for part in opened))
            attributes[PARTS] = [part.name for part in opened]
            attributes[PART_SENTENCES] = [len(part.sentences) for part in opened]
        all_in_one = opened[0].sentences.member is Member.ALL
        virtual = all_in_one and not merge
        version = h5py.h5f.LIBVER_V110 if virtual else h5py.h5f.LIBVER_V18  # which has no virtual datasets
        with _new_features(output, attributes, version) as file:
            (_join_rows if all_in_one else _join_members)(file, opened, merge)
    if merge:
        _remove(parts, output)


def _open_parts(paths: Sequence[Path], output: Path, merge: bool, stack: ExitStack) -> list[Part]:
    folder, start = parts_folder(output), 0
    parts: list[Part] = []
    if not paths:
        raise InputError(f"there are no parts to make {output} of: name finished feature files")
    for path in paths:
        if not merge and Path(path).absolute().parent != folder.absolute():
            raise InputError(f"{path} is not in {folder}, where the parts of {output} have to be: move it there")
        sentences = open_stored(path)
        stack.callback(sentences.close)
        first = parts[0].sentences if parts else sentences
        if difference := attribute_difference(_said(sentences), _said(first), ignored=OF_A_DUMP):
            raise InputError(f"{path} does not fit {first.path}, its {difference}: dump both with the same options")
        parts.append(Part(sentences, f"{folder.name}/{Path(path).name}", start))
        start += len(sentences)
    return parts


def _said(part: StoredSentences) -> dict[str, Any]:
    """The attributes of a part, and the form of its sentences, which they need not say."""
    form = {"number of layers": part.layers, "type of numbers": str(part.dtype), "width of vectors": part.width}
    return part.attributes | form


@contextmanager
def _new_features(path: Path, attributes: dict[str, Any], version: int) -> Iterator[h5py.File]:
    """An HDF5 file with these attributes, which appears under its name when the block ends well."""
    with atomic_path(path) as partial, DiskFile(partial) as disk:
        try:
            with new_file(disk, version=version) as file:
                for name, value in attributes.items():
                    file.attrs[name] = value
                yield file
        finally:
            disk.raise_error()


def _remove(parts: Sequence[Path], output: Path) -> None:
    for path in parts:
        Path(path).unlink(missing_ok=True)
    with suppress(OSError):  # there are other files in it, or none of the parts was
        parts_folder(output).rmdir()


def _join_members(file: h5py.File, parts: Sequence[Part], merge: bool) -> None:
    """Join layouts that have a dataset a sentence, or a group a document."""
    for part in parts:
        stored = part.sentences
        with stored.file.damage("cannot be read"):
            for source, target in members(stored, part.start, lambda name: file.id.links.exists(name.encode())):
                if merge:
                    _copy(stored, source, file, target)
                else:
                    file.id.links.create_external(target.encode(), os.fsencode(part.name), f"/{source}".encode())
    _write_text(file, MAP_KEY, joined_map(parts))


def _copy(stored: StoredSentences, source: str, file: h5py.File, target: str) -> None:
    """Copy the dataset of a sentence, or the group of a document."""
    if stored.member is Member.DOCUMENT:
        group = h5py.h5g.create(file.id, target.encode())
        for index in range(stored.file.members(source)):
            _copy_dataset(stored, f"{source}/{index}", group, str(index))
    else:
        _copy_dataset(stored, source, file.id, target)


def _copy_dataset(stored: StoredSentences, source: str, group: h5py.h5g.GroupID, target: str) -> None:
    """Copy a dataset as it is: what is compressed is not unpacked."""
    if stored.file.dataset(source).get_create_plist().get_nfilters():
        h5py.h5o.copy(stored.file.id, source.encode(), group, target.encode())
        return
    array = stored.file.array(source)
    kind = h5py.h5t.py_create(array.dtype)
    copy = h5py.h5d.create(group, target.encode(), kind, h5py.h5s.create_simple(array.shape), plain_properties())
    if array.size:
        copy.write(h5py.h5s.ALL, h5py.h5s.ALL, array, kind)


def _join_rows(file: h5py.File, parts: Sequence[Part], merge: bool) -> None:
    """Join the flat layout: what says where sentences are is written anew, the states are linked to or copied."""
    offsets = joined_offsets(parts)
    shape = (int(offsets[-1]), *parts[0].sentences.file[STATES].shape[1:])
    if merge:
        _copy_states(file, parts, offsets, shape)
    else:
        layout = h5py.VirtualLayout(shape, parts[0].sentences.dtype)
        for part, (start, stop) in rows_of(parts, offsets):
            if start < stop:
                layout[start:stop] = h5py.VirtualSource(part.source_name, STATES, (stop - start, *shape[1:]))
        file.create_virtual_dataset(STATES, layout)
    file.create_dataset(OFFSETS, data=offsets)
    _write_text(file, DOCUMENTS, joined_sizes(parts))


def _copy_states(file: h5py.File, parts: Sequence[Part], offsets: np.ndarray, shape: tuple[int, ...]) -> None:
    """One dataset of all states, kept as in the first part: in one piece, or in chunks, which are packed anew."""
    first = parts[0].sentences.file[STATES]
    packed = {name: getattr(first, name) for name in ("chunks", "compression", "compression_opts", "shuffle")}
    most = (None, *shape[1:]) if first.chunks else None
    states = file.create_dataset(STATES, shape, first.dtype, maxshape=most, **packed)
    rows = max(1, BLOCK_BYTES // (first.dtype.itemsize * math.prod(shape[1:])))
    for part, (begin, end) in rows_of(parts, offsets):
        for start in range(begin, end, rows):
            stop = min(end, start + rows)
            states[start:stop] = part.sentences.file.rows(STATES, start - begin, stop - begin)


def _write_text(file: h5py.File, name: str, content: bytes | None) -> None:
    if content is not None:
        file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"))[0] = content
