"""Linked feature files: one file that links to the files of several processes, its parts, as if all were in it.

    features.h5              attributes: those of the parts, `parts` (their names) and `part_sentences`; links; the map
    features.h5.parts/0.h5   the sentences of the first process, a feature file of its own
    features.h5.parts/1.h5   those of the second

Links are those of HDF5, relative to the folder of the file, so that any reader follows them: an external link a
sentence (`allennlp`, `bilm`) or a document (`e2e-coref`), a virtual dataset (`flat`). Here they are not followed but
compared: the parts are opened by the names in `parts`, which may lead nowhere but into a folder beside the file.
"""

import os
import weakref
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.features.links import OF_A_DUMP, Part, attribute_difference, check_links, joined, joined_documents
from elmoc.features.stored import PART_SENTENCES, PARTS, StoredSentences, open_stored
from elmoc.files.hdf5 import CheckedFile

_FOLDER = ".parts"
ADVICE = "copy the folder of parts together with the file, or write it again with `elmoc dump-features`"


def parts_folder(path: Path | str) -> Path:
    """The folder beside a feature file that holds its parts."""
    path = Path(path)
    return path.parent / (path.name + _FOLDER)


class LinkedSentences:
    """The sentences of all parts, one part after the other; the interface is that of `StoredSentences`.

    Raises `InputError` where a part is missing, lies outside the folder, has other attributes (of another model, say)
    or another number of sentences than the whole says.
    """

    def __init__(self, file: CheckedFile) -> None:
        weakref.finalize(self, file.close)
        self.path, self.file, self.attributes = Path(file.path), file, file.attributes()
        self.parts: list[Part] = []
        self._starts: list[int] = []
        self._length = 0
        for name, count in zip(*_part_records(file, self.attributes), strict=True):
            self.parts.append(Part(self._open(name, count), name, self._length))
            self._starts.append(self._length)
            self._length += count
        first = self.parts[0].sentences
        self.layout, self.layers, self.width, self.dtype = first.layout, first.layers, first.width, first.dtype
        self.has_map = all(part.sentences.has_map for part in self.parts)

    def __len__(self) -> int:
        return self._length

    def view(self, index: int) -> np.ndarray:
        """The array of a sentence (see `StoredSentences`)."""
        part = self._part(index)
        return part.sentences.view(index - part.start)

    def where(self, index: int) -> str:
        """What errors call a sentence."""
        part = self._part(index)
        return f"{self.path}: sentence {index} ({index - part.start} of {part.name})"

    def words(self, index: int) -> int:
        """The number of words of a sentence; its numbers are not read."""
        part = self._part(index)
        return part.sentences.words(index - part.start)

    def sentence_map(self) -> dict[str, int]:
        """The index of each sentence by its words; of equal sentences it is that in the last part."""
        return joined((part.start, part.sentences.sentence_map()) for part in self.parts)

    def lines(self) -> dict[str, int]:
        """The index of each sentence by its text."""
        return joined((part.start, part.sentences.lines()) for part in self.parts)

    def documents(self) -> dict[str, range] | None:
        """The sentences of each document by its key; None where the parts do not tell documents apart."""
        return joined_documents(self.parts)

    @property
    def files(self) -> list[Path]:
        """The file, and its parts."""
        return [self.path, *(part.sentences.path for part in self.parts)]

    @property
    def compression(self) -> str | None:
        """How the numbers of the first part are packed."""
        return self.parts[0].sentences.compression

    def check_links(self) -> None:
        """Raise an `InputError` unless the links that other readers follow lead to the same sentences."""
        check_links(self.file, self.parts)

    def close(self) -> None:
        """Close the file and its parts."""
        self.file.close()
        for part in self.parts:
            part.sentences.close()

    def _part(self, index: int) -> Part:
        return self.parts[bisect_right(self._starts, index) - 1]

    def _open(self, name: str, count: int) -> StoredSentences:
        part = open_stored(_inside(self.path, name), advice=f"{self.path} links to it, {ADVICE}")
        of_several = OF_A_DUMP - self.attributes.keys()
        if difference := attribute_difference(part.attributes, self.attributes, ignored=of_several):
            raise InputError(f"{self.path} links to {part.path}, where {difference}: {ADVICE}")
        if len(part) != count:
            raise InputError(
                f"{self.path} links to {count:,} sentences of {part.path}, which has {len(part):,}: {ADVICE}"
            )
        return part


def _part_records(file: CheckedFile, attributes: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """The names of the parts and their numbers of sentences."""
    with file.damage(f"does not say what its parts are, in the attributes {PARTS} and {PART_SENTENCES}"):
        names, counts = (np.asarray(attributes[name]) for name in (PARTS, PART_SENTENCES))
        if names.ndim != 1 or names.shape != counts.shape or not len(names) or counts.dtype.kind not in "iu":
            raise ValueError(f"{names.shape} and {counts.shape}, of type {counts.dtype}")
        if not all(isinstance(name, str) for name in names) or (counts < 0).any():
            raise ValueError("they are neither names nor numbers of sentences")
    return list(names), [int(count) for count in counts]


def _inside(path: Path, name: str) -> Path:
    """The part of that name; an `InputError` unless it lies in a folder beside the file."""
    folder, parts = Path(os.path.realpath(path)).parent, PurePosixPath(name).parts
    part = folder.joinpath(*parts)
    if len(parts) != 2 or ".." in parts or "\0" in name or Path(os.path.realpath(part)).parent.parent != folder:
        raise InputError(f"{path} links to {shortened(repr(name))}, which is not in a folder beside it: {ADVICE}")
    return part
