"""The `e2e-coref` layout of feature files: what e2e-coref's `load_lm_embeddings` reads.

A group a document, its name the document's key with ":" for "/", and in it one dataset a sentence, "0", "1", …,
`(n, 2P, L + 1)`: layers last, also for one layer. Nothing else is in the groups, whose members the reader counts. Other
readers find the documents in the order in which they were written, which the file tracks; in a file without such an
order, in that of their names.
"""

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Any

import h5py
import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.datasets import Datasets, Form, Slab
from elmoc.features.layouts.interface import LayoutOptions, Rows
from elmoc.features.layouts.keys import in_order
from elmoc.features.layouts.sentence import Sentence
from elmoc.features.unfinished.notes import Notes
from elmoc.files.hdf5 import CheckedFile


def group_name(document: str) -> str:
    """The name of a document's group."""
    return document.replace("/", ":")


class E2eCorefReader:
    """The `LayoutReader`."""

    has_map = False

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        with file.damage(
            "has no groups of documents with datasets of numbers, (words, width, layers), in them: it is not a feature "
            "file in the e2e-coref layout"
        ):
            self._names = in_order(file)
            self._ends = list(accumulate(map(file.members, self._names)))
            if not len(self):
                raise ValueError("it has no sentences")
            self.first = file[self._key(0)]
            shape, dtype = self.first.shape, self.first.dtype
            if dtype.kind != "f" or len(shape) != 3 or 0 in shape[1:]:
                raise ValueError(f"it has the shape {shape} and the type {dtype}")
        self.width, self.layers = int(shape[1]), int(shape[2])
        self._is_single = bool(attributes.get("single", False)) and self.layers == 1

    def _key(self, index: int) -> str:
        document = bisect_right(self._ends, index)
        return f"{self._names[document]}/{index - (self._ends[document - 1] if document else 0)}"

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def view(self, index: int, rows: Rows) -> np.ndarray:
        array = np.moveaxis(rows(self._key(index)), 2, 0)
        return array[0] if self._is_single and len(array) == 1 else array

    def words(self, index: int) -> int:
        shape = self._file[self._key(index)].shape
        if len(shape or ()) != 3:
            raise ValueError(f"it has the shape {shape}")
        return int(shape[0])

    def lines(self) -> dict[str, int]:
        raise InputError(
            f"{self._file.path}: the e2e-coref layout has no map of sentences: ask for them by their number or document"
        )

    def documents(self) -> dict[str, range]:
        """The keys are the names of the groups, with ":" for "/"."""
        return {name: range(*bounds) for name, bounds in zip(self._names, pairwise([0, *self._ends]), strict=True)}


class E2eCorefWriter:
    """The `LayoutWriter`."""

    def __init__(
        self, file: h5py.File, options: LayoutOptions, notes: Notes, memory: dict[str, int | str] | None
    ) -> None:
        self._file = file
        self._form = Form(options.shape, 2)
        self._datasets = Datasets(self._form, compress=options.compress)
        self._document: str | None = None
        self._group: h5py.h5g.GroupID | None = None
        self._count = 0
        if memory and "document" in memory:
            self._document, self._count = str(memory["document"]), int(memory["in_document"])
            self._group = h5py.h5g.open(file.id, group_name(self._document).encode())

    def add(self, sentence: Sentence, states: np.ndarray) -> None:
        self._datasets.write(self._group_of(sentence), self._next_key(), states)

    def start(self, sentence: Sentence) -> Slab:
        words = len(sentence.tokens)
        return Slab(self._datasets.create(self._group_of(sentence), self._next_key(), words), self._form, words)

    def _next_key(self) -> str:
        index, self._count = self._count, self._count + 1
        return str(index)

    def _group_of(self, sentence: Sentence) -> h5py.h5g.GroupID:
        document = sentence.document
        if document is None:
            raise InputError(
                f'the sentence "{shortened(sentence.line)}" belongs to no document, which the e2e-coref layout needs: '
                "give the sentences as jsonlines with doc_key"
            )
        if document != self._document:
            self._group = self._new_group(document)
            self._document, self._count = document, 0
        return self._group

    def _new_group(self, document: str) -> h5py.h5g.GroupID:
        name = group_name(document)
        if name in ("", ".") or "\0" in name:
            raise InputError(f"a document has the key {document!r}, which HDF5 cannot have as a name: give it another")
        if self._file.id.links.exists(name.encode()):
            raise InputError(
                f'the document "{shortened(document)}" has the same name in the e2e-coref layout '
                f'("{shortened(name)}") as one before it, or its sentences do not follow each other: give each '
                "document a key of its own, and its sentences one after the other"
            )
        return h5py.h5g.create(self._file.id, name.encode())

    def memory(self) -> dict[str, int | str]:
        return {} if self._document is None else {"document": self._document, "in_document": self._count}

    def rewritten(self) -> range:
        return range(0)

    def finish(self) -> None:
        """Nothing follows the sentences."""
