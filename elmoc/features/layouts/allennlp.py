"""The `allennlp` and `bilm` layouts of feature files: one contiguous dataset a
sentence, its key the line number.

`allennlp` is what the `allennlp elmo` command writes: datasets `(L + 1, n, 2P)` of
float32 (or float16) for all layers, `(n, 2P)` for the top one or the average, by the
line number as a string from "0". A dataset `sentence_to_index`, shape (1,), holds one
JSON object {stripped line: "index"} (of duplicate lines the last index). Everything
else is in the attributes of the root, so that iterating over the keys finds sentences
and the map alone.

`bilm` is what bilm-tf's `dump_bilm_embeddings` writes: without the map (readers count
the datasets), and one layer is `(1, n, 2P)`.

Files of other tools may have sentences as keys. Lines are in the order that the file
tracks for its datasets, or, without such an order, in the order of the keys. The
library makes a group of the text before a `/` (or several in a row). ELMoForManyLangs'
keys have tabs between words, and `$period$` and `$backslash$` in place of `.` and `/`.
"""

import json
from itertools import pairwise
from typing import Any

import h5py
import msgspec
import numpy as np

from elmoc.features.layouts import Entry, LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile

MAP_KEY = "sentence_to_index"


class AllennlpReader(LayoutReader):
    """Reads both layouts."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        has_map = MAP_KEY in file
        has_numbers = has_map or "layout" in attributes or "0" in file
        # Else its keys are the sentences, as other tools write them.
        self._sentences = [] if has_numbers else leaves(file)
        self.has_map = has_map or not has_numbers
        self._length = len(self._sentences) or file.root.get_num_objs() - has_map
        self.first = file.stored(self._key(0))
        shape = self.first.shape
        self.layers, _, self.width = (1, *shape) if len(shape) == 2 else shape

    def __len__(self) -> int:
        return self._length

    def view(self, index: int) -> np.ndarray:
        return self._file.read(self._key(index))

    def _key(self, index: int) -> str:
        return self._sentences[index] if self._sentences else str(index)

    def lines(self) -> dict[str, int]:
        if self._sentences:
            lines = (
                key.replace("$period$", ".").replace("$backslash$", "/")
                for key in self._sentences
            )
            return {line: index for index, line in enumerate(lines)}
        if not self.has_map:
            return super().lines()
        content = h5py.Dataset(self._file.dataset(MAP_KEY))[0]
        # Its values are numbers as strings, so the decoder is not strict.
        found = msgspec.json.decode(content, type=dict[str, int], strict=False)
        if not all(0 <= index < self._length for index in found.values()):
            raise ValueError(
                f"its {MAP_KEY} map has indices of sentences that it does not have"
            )
        return found


class AllennlpWriter(LayoutWriter):
    """Writes the `allennlp` layout."""

    layout = "allennlp"
    reader = AllennlpReader
    found_by_words = True

    def begin(self) -> None:
        self._indices: dict[str, str] = {}

    def put(self, entry: Entry, array: np.ndarray) -> None:
        index = str(self.count)
        self.output.write(index, array)
        if self.has_map:
            # Of equal lines the last one counts, in its place, too.
            self._indices.pop(entry.line, None)
            self._indices[entry.line] = index

    def finish(self) -> None:
        if self.has_map:
            content = json.dumps(self._indices, ensure_ascii=False).encode()
            text = h5py.string_dtype("utf-8")
            self.output.file.create_dataset(MAP_KEY, (1,), text, [content])


class BilmWriter(AllennlpWriter):
    """Writes the `bilm` layout."""

    layout = "bilm"
    layers_axis = 0
    found_by_words = False


def is_group(file: CheckedFile, name: str) -> bool:
    """Whether a member of the root is a group of others, and no link."""
    member = name.encode()
    is_hard = file.root.links.get_info(member).type == h5py.h5l.TYPE_HARD
    return is_hard and h5py.h5o.get_info(file.root, member).type == h5py.h5o.TYPE_GROUP


def leaves(file: CheckedFile) -> list[str]:
    """The paths of all members that are no groups, in groups of the root, too, which
    are ordered by name.
    """
    paths: list[str] = []
    for name in file.names():
        if not is_group(file, name):
            paths.append(name)
            continue
        inner: list[bytes] = []
        # It is open as long as it has a name here.
        group = h5py.h5g.open(file.root, name.encode())
        # The library visits each group once, and names a group before its members.
        group.links.visit(inner.append)
        for path, after in pairwise([*inner, b""]):
            if not after.startswith(path + b"/"):
                paths.append(f"{name}/{path.decode()}")
    return paths
