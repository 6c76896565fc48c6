"""FastText `.bin` files: where their parts are, and whether the sizes that they state can be true.

The library believes every number in a file: wrong ones make it crash, take all memory, or give wrong vectors. So the
header, the dictionary and the sizes of the matrices are compared with each other and with the size of the file.
"""

import mmap
import re
import struct
from array import array
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from elmoc.errors import reading
from elmoc.files.text import require_file
from elmoc.settings import check_settings, setting

# The widest word vectors that are read: a damaged number can say any width.
MAX_SIZE = 1 << 16
_MAGIC = 793712314
_VERSIONS = (11, 12)
_START = struct.Struct("<2i")  # magic, version
_HEADER = struct.Struct("<12id3i2q")  # the fields of `Header`
_MATRIX = struct.Struct("<?2q")  # whether it is quantised, rows, columns; its numbers follow
# A dictionary entry: a word of at most 1 MiB, a zero byte, its count and type. It matches anything: the second group is
# None where there is no zero byte.
_ENTRY = re.compile(rb"([^\0]{0,1048576}+)(?:\0(.{9}))?+", re.DOTALL)
COUNT_AND_TYPE = np.dtype([("count", "<i8"), ("type", "i1")])
_MOST_COUNT = 10**15
_HIERARCHICAL_SOFTMAX = 1  # of the kinds of loss
_SUPERVISED = 3  # of the kinds of model


@dataclass(frozen=True)
class Header:
    """The arguments of the training and the sizes of the dictionary, in the order of the file, by fastText's names.

    pruned: −1, a dictionary that is not pruned; only quantised files, which are not read, have others.
    """

    dim: int = setting(least=1, most=MAX_SIZE)
    ws: int = setting(least=0)
    epoch: int = setting(least=0)
    min_count: int = setting(least=0)
    neg: int = setting(least=0)
    word_ngrams: int = setting(least=0)
    loss: int = setting(least=1, most=4)
    model: int = setting(least=1, most=3)
    bucket: int = setting(least=0)
    minn: int = setting(least=0)
    maxn: int = setting(least=0, most=100)
    lr_update_rate: int = setting(least=0)
    t: float = setting(least=0)
    entries: int = setting(least=1)
    words: int = setting(least=1)
    labels: int = setting(least=0)
    tokens: int = setting(least=0)
    pruned: int = setting(least=-1, most=-1)

    @property
    def shortest(self) -> int:
        """The characters of the shortest n-grams."""
        return max(1, self.minn)

    @property
    def rows(self) -> tuple[int, int]:
        """The rows of the input matrix, and of the output matrix."""
        return self.words + self.bucket, self.labels if self.model == _SUPERVISED else self.words


@dataclass(frozen=True)
class FastTextFile:
    """A file that has been checked, mapped into memory: none of it takes memory before it is read."""

    content: mmap.mmap
    header: Header
    entries: np.ndarray | None  # int64 [entries]: where these begin; None where the dictionary was known
    dictionary_end: int
    input_start: int  # where the numbers of the input matrix start


def open_file(path: Path | str, *, dictionary_end: int | None = None) -> FastTextFile:
    """Map a fastText `.bin` file whose sizes are as they should be.

    `dictionary_end` is given where the dictionary was checked before: it is not walked through again.
    Raises `InputError` when the file is missing, foreign, quantised, truncated or damaged.
    """
    require_file(path)
    with reading(path), open(path, "rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, version = _START.unpack_from(content)
        if magic != _MAGIC or version not in _VERSIONS:
            raise ValueError("it is not a fastText .bin file of version 11 or 12")
        header = Header(*_HEADER.unpack_from(content, _START.size))
        if version == _VERSIONS[0] and header.model == _SUPERVISED:
            header = replace(header, maxn=0)  # as the library does: models of before had no n-grams
        check_settings(header, str)
        inputs, outputs = header.rows
        without_buckets = header.bucket == 0 and header.maxn >= header.shortest
        if header.entries != header.words + header.labels or without_buckets or inputs >= 1 << 31 or not outputs:
            raise ValueError(f"the numbers of its header contradict each other: {header}")
        entries = None
        if dictionary_end is None:
            entries, dictionary_end = _check_dictionary(content, header, _START.size + _HEADER.size)
        position = dictionary_end
        for rows in header.rows:
            quantised, *sizes = _MATRIX.unpack_from(content, position)
            if quantised or sizes != [rows, header.dim]:
                raise ValueError(f"a matrix is quantised, or not of {rows:,} × {header.dim:,} numbers")
            position += _MATRIX.size + 4 * rows * header.dim
        if position != len(content):
            raise ValueError(f"it has {len(content):,} bytes where {position:,} are expected")
    return FastTextFile(content, header, entries, dictionary_end, input_start=dictionary_end + _MATRIX.size)


def _check_dictionary(content: mmap.mmap, header: Header, start: int) -> tuple[np.ndarray, int]:
    """Check the entries; returns int64 [entries], where each begins, and where the dictionary ends."""
    found, begins, end = bytearray(), array("q"), start
    for entry in islice(_ENTRY.finditer(content, start), header.entries):
        if entry[2] is None:
            raise ValueError("it is truncated, or a word of its dictionary is longer than 1 MiB")
        found += entry[2]
        begins.append(entry.start())
        end = entry.end()
    entries = np.frombuffer(found, COUNT_AND_TYPE)
    counts, types = entries["count"], entries["type"]
    if len(entries) < header.entries or types[: header.words].any() or (types[header.words :] != 1).any():
        raise ValueError(f"its dictionary does not have {header.words:,} words and then {header.labels:,} labels")
    if counts.min() < 0 or counts.max() >= _MOST_COUNT:
        raise ValueError("its dictionary has a word with an impossible count")
    outputs = counts[header.words :] if header.model == _SUPERVISED else counts[: header.words]
    if header.loss == _HIERARCHICAL_SOFTMAX and (outputs.min() < 1 or (np.diff(outputs) > 0).any()):
        raise ValueError("the counts of its dictionary do not fall, as the counts of a tree have to")
    # The library lists the subwords of every word, 4 bytes each, when it loads a file.
    letters = end - start - (COUNT_AND_TYPE.itemsize + 1) * len(entries)
    subwords = (letters + 2 * len(entries)) * max(0, header.maxn + 1 - header.shortest)
    if 4 * subwords > 16 * len(content) + (1 << 30):
        raise ValueError(f"its words have about {subwords:,} subwords of {header.minn} to {header.maxn} letters")
    return np.frombuffer(begins, np.int64), end
