"""The `e2e-coref` layout of feature files: what e2e-coref's `load_lm_embeddings` reads.

A group a document, its name the document's key with ":" for "/", and in it one dataset
a sentence, "0", "1", …, `(n, 2P, L + 1)`: layers last, also for one layer. Nothing else
is in the groups, whose members the reader counts. Other readers find the documents in
the order in which they were written, which the file tracks; in a file without it they
are in the order of their names.
"""

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Any

import h5py
import numpy as np

from elmoc.features.layouts import Entry, LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile


def group_name(document: str) -> str:
    """The name of a document's group."""
    return document.replace("/", ":")


class E2eCorefReader(LayoutReader):
    """Reads the `e2e-coref` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self._names = file.names()
        sizes = []
        for name in self._names:
            group = h5py.h5g.open(file.root, file.own(name))
            sizes.append(group.get_num_objs())
        # The index of each document's first sentence, and the number of sentences.
        self._starts = list(accumulate(sizes, initial=0))
        self.first = file.stored(self._key(0))
        _, self.width, self.layers = self.first.shape

    def _key(self, index: int) -> str:
        document = bisect_right(self._starts, index) - 1
        return f"{self._names[document]}/{index - self._starts[document]}"

    def __len__(self) -> int:
        return self._starts[-1]

    def view(self, index: int) -> np.ndarray:
        return np.moveaxis(self._file.read(self._key(index)), 2, 0)

    def words(self, index: int) -> int:
        return int(self._file.dataset(self._key(index)).shape[0])

    def documents(self) -> dict[str, range]:
        """The keys are the names of the groups, with ":" for "/"."""
        bounds = zip(self._names, pairwise(self._starts), strict=True)
        return {name: range(start, end) for name, (start, end) in bounds}


class E2eCorefWriter(LayoutWriter):
    """Writes the `e2e-coref` layout."""

    layout = "e2e-coref"
    reader = E2eCorefReader
    needs_documents = True
    layers_axis = 2

    def begin(self) -> None:
        self._document: str | None = None
        self._group: h5py.h5g.GroupID | None = None
        self._count = 0

    def put(self, entry: Entry, array: np.ndarray) -> None:
        assert entry.document is not None, "dumps and conversions see to it"
        if entry.document != self._document:
            # A second group of one name is an error of the library.
            name = group_name(entry.document).encode()
            self._group = h5py.h5g.create(self.output.file.id, name)
            self._document = entry.document
            self._count = 0
        self.output.write(str(self._count), array, self._group)
        self._count += 1
