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

from elmoc.features.layouts.interface import LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile
from elmoc.text.sentences import Sentence


def group_name(document: str) -> str:
    """The name of a document's group."""
    return document.replace("/", ":")


class E2eCorefReader(LayoutReader):
    """Reads the `e2e-coref` layout."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        self._names = file.names()
        groups = (h5py.h5g.open(file.root, file.own(name)) for name in self._names)
        self._bounds = list(
            accumulate((group.get_num_objs() for group in groups), initial=0)
        )
        self.first = file.stored(self._key(0))
        _, self.width, self.layers = self.first.shape

    def _key(self, index: int) -> str:
        document = bisect_right(self._bounds, index) - 1
        return f"{self._names[document]}/{index - self._bounds[document]}"

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def view(self, index: int) -> np.ndarray:
        return np.moveaxis(self._file.read(self._key(index)), 2, 0)

    def words(self, index: int) -> int:
        return int(self._file.dataset(self._key(index)).shape[0])

    def documents(self) -> dict[str, range]:
        """The keys are the names of the groups, with ":" for "/"."""
        return {
            name: range(*bounds)
            for name, bounds in zip(self._names, pairwise(self._bounds), strict=True)
        }


class E2eCorefWriter(LayoutWriter):
    """Writes the `e2e-coref` layout."""

    layout = "e2e-coref"
    reader = E2eCorefReader
    needs_documents = True
    layers_axis = 2

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._document: str | None = None
        self._group: h5py.h5g.GroupID | None = None
        self._count = 0

    def put(self, sentence: Sentence, states: np.ndarray) -> None:
        assert sentence.document is not None, "dumps and conversions see to it"
        if (
            sentence.document != self._document
        ):  # a second group of one name is an error of the library
            self._group = h5py.h5g.create(
                self._file.id, group_name(sentence.document).encode()
            )
            self._document = sentence.document
            self._count = 0
        self._write(self._group, str(self._count), states)
        self._count += 1
