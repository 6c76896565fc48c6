"""The `e2e-coref` layout of feature files: what e2e-coref's `load_lm_embeddings` reads.

A group a document, its name the document's key with ":" for "/", and in it one dataset
a sentence, "0", "1", …, `(n, 2P, L + 1)`: layers last, also for one layer. Nothing else
is in the groups, whose members the reader counts. Other readers find the documents in
the order in which they were written, which the file tracks; in a file without it they
are in the order of their names.
"""

from typing import Any

import h5py
import numpy as np

from elmoc.features.layouts import Entry, LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile


class E2eCorefReader(LayoutReader):
    """Reads the `e2e-coref` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self._keys: list[str] = []
        for name in file.names():
            size = h5py.h5g.open(file.root, file.own(name)).get_num_objs()
            self._keys += [f"{name}/{index}" for index in range(size)]
        self.first = file.stored(self._keys[0])
        _, self.width, self.layers = self.first.shape

    def __len__(self) -> int:
        return len(self._keys)

    def view(self, index: int) -> np.ndarray:
        return np.moveaxis(self._file.read(self._keys[index]), 2, 0)


class E2eCorefWriter(LayoutWriter):
    """Writes the `e2e-coref` layout."""

    layout = "e2e-coref"
    reader = E2eCorefReader
    needs_documents = True
    layers_axis = 2

    def begin(self) -> None:
        self._document: str | None = None

    def put(self, entry: Entry, array: np.ndarray) -> None:
        assert entry.document is not None, "dumps see to it"
        if entry.document != self._document:
            # A second group of one name is an error of the library.
            self._group = entry.document.replace("/", ":")
            h5py.h5g.create(self.output.file.id, self._group.encode())
            self._document = entry.document
            self._first = self.count
        self.output.write(f"{self._group}/{self.count - self._first}", array)
