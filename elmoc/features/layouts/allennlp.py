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

With sentence keys, the key is the sentence and there is no map. Lines are in the order
that the file tracks for its datasets, or, without such an order, in the order of the
keys. A key is the sentence itself but for characters that
HDF5 cannot have in a name: `/` becomes `%2F`, NUL `%00`, and the sentence that is a
single dot `%2E`. The second line of the same words gets `%#2` at its end, the third
`%#3`, and so on; the line without words is `%#1`. So that every key can be read back,
`%` becomes `%25` where what follows it would make it one of these; before a blank, as
in "50 % of", it stays as it is. Other tools' keys are the unchanged sentence, in which
the library makes a group of the text before a `/` (or several in a row);
ELMoForManyLangs' keys have tabs between words, and `$period$` and `$backslash$` in
place of `.` and `/`.
"""

import re
from collections import Counter
from functools import cached_property
from itertools import pairwise
from typing import Any

import h5py
import msgspec
import numpy as np

from elmoc.features.layouts.interface import LayoutReader, LayoutWriter
from elmoc.files.hdf5 import CheckedFile
from elmoc.text.sentences import Sentence

MAP_KEY = "sentence_to_index"
_ESCAPES = {"%": "%25", "/": "%2F", "\0": "%00", ".": "%2E"}
_TO_ESCAPE = re.compile(r"%(?=25|2F|00|2E|#[0-9])|/|\0")
_ESCAPED = re.compile("|".join(_ESCAPES.values()))
_UNESCAPED = {escape: character for character, escape in _ESCAPES.items()}
_NUMBER = re.compile(r"%#[0-9]+$")


class AllennlpReader(LayoutReader):
    """Reads both layouts."""

    def __init__(self, file: CheckedFile, attributes: dict[str, Any]) -> None:
        self._file = file
        count = file.root.get_num_objs()
        self._is_foreign = "layout" not in attributes
        has_no_numbers = (
            self._is_foreign and "0" not in file and MAP_KEY not in file and count > 0
        )
        self._has_keys = bool(attributes.get("sentence_keys", has_no_numbers))
        self._length = len(self._keys) if self._has_keys else count - (MAP_KEY in file)
        self.has_map = self._has_keys or MAP_KEY in file
        self.first = file.stored(self._key(0))
        self.layers, _, self.width = (
            (1, *self.first.shape) if len(self.first.shape) == 2 else self.first.shape
        )

    def __len__(self) -> int:
        return self._length

    def view(self, index: int) -> np.ndarray:
        return self._file.read(self._key(index))

    def words(self, index: int) -> int:
        return int(self._file.dataset(self._key(index)).shape[-2])

    def _key(self, index: int) -> str:
        return self._keys[index] if self._has_keys else str(index)

    @cached_property
    def _keys(self) -> list[str]:
        return leaves(self._file) if self._is_foreign else self._file.names()

    def lines(self) -> dict[str, int]:
        if self._has_keys:
            return {
                line_of(key, foreign=self._is_foreign): index
                for index, key in enumerate(self._keys)
            }
        if not self.has_map:
            return super().lines()
        content = h5py.Dataset(self._file.dataset(MAP_KEY))[0]
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

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._of_line: Counter[str] = Counter()  # how often a line was there
        self._has_map = self.found_by_words and self._by_map and not self._by_keys
        self._map: dict[str, int] = {}
        self._count = 0

    def put(self, sentence: Sentence, states: np.ndarray) -> None:
        line = sentence.line
        key = str(self._count)
        if self._by_keys:
            self._of_line[line] += 1
            key = key_of(line, self._of_line[line])
        self._write(self._file.id, key, states)
        if self._has_map:
            self._map.pop(line, None)  # in the order of last indices
            self._map[line] = self._count
        self._count += 1

    def finish(self) -> None:
        if self._has_map:
            pairs = (
                b'%s: "%d"' % (msgspec.json.encode(line), index)
                for line, index in self._map.items()
            )
            self._write_text(MAP_KEY, b"{" + b", ".join(pairs) + b"}")


class BilmWriter(AllennlpWriter):
    """Writes the `bilm` layout."""

    layout = "bilm"
    layers_axis = 0
    found_by_words = False


def key_of(line: str, number: int) -> str:
    """The key of the line with this text that is there for the `number`th time, from 1."""
    key = (
        _ESCAPES["."]
        if line == "."
        else _TO_ESCAPE.sub(lambda found: _ESCAPES[found[0]], line)
    )
    return key if key and number == 1 else f"{key}%#{number}"


def line_of(key: str, *, foreign: bool = False) -> str:
    """The text of the line that has this key, in a `foreign` file of another tool."""
    if foreign:
        return key.replace("$period$", ".").replace("$backslash$", "/")
    return _ESCAPED.sub(lambda found: _UNESCAPED[found[0]], _NUMBER.sub("", key))


def is_group(file: CheckedFile, name: str) -> bool:
    """Whether a member of the root is a group of others, and no link."""
    is_own = file.root.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD
    return (
        is_own
        and h5py.h5o.get_info(file.root, name.encode()).type == h5py.h5o.TYPE_GROUP
    )


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
        group = h5py.h5g.open(file.root, name.encode())
        group.links.visit(inner.append)  # into each group once
        for path, after in pairwise([*inner, b""]):
            if not after.startswith(path + b"/"):
                paths.append(f"{name}/{path.decode()}")
    return paths
