"""FastText `.bin` files: where their parts are, and whether all that they say about themselves is so.

The library believes every number in a file: wrong ones make it crash, take all memory, or give wrong vectors. So the
header, the dictionary and the sizes of the matrices are checked against each other and against the size of the file
before a vector is read. Of the vectors themselves nothing is read here.
"""

import mmap
import os
import re
import struct
from array import array
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from elmoc.errors import InputError
from elmoc.files.text import require_file
from elmoc.settings import check_settings, setting

MAX_SIZE = 1 << 16
"""Wider word vectors are refused: no one makes them, and a damaged number can say so."""
MAGIC = struct.pack("<i", 793712314)
"""What the file begins with."""
_VERSIONS = (11, 12)
_START = struct.Struct("<4si")  # magic, version
_HEADER = struct.Struct("<12id3i2q")  # the fields of `Header`
_FLAG = struct.Struct("<B")
_DENSE = struct.Struct("<2q")  # rows, columns
_QUANTISED = struct.Struct("<B2qi")  # whether norms are quantised apart, rows, columns, bytes of codes
_QUANTISER = struct.Struct("<4i")  # columns, parts that they are cut into, columns of a part, and of the last part
_CENTROIDS = 256  # of each part
_ENTRY = re.compile(rb"([^\0]{0,1048576}+)(?:\0(.{9}))?+", re.DOTALL)
"""A dictionary entry: a word, which is not over a MiB, a zero byte, and its count and type; it matches anything."""
COUNT_AND_TYPE = np.dtype([("count", "<i8"), ("type", "i1")])
"""What follows a dictionary entry and its zero byte."""
_MOST_COUNT = 10**15
_HIERARCHICAL_SOFTMAX = 1  # of the kinds of loss
_SUPERVISED = 3  # of the kinds of model


@dataclass(frozen=True)
class Header:
    """The arguments of the training and the sizes of the dictionary, in the order of the file, by fastText's names."""

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
    pruned: int = setting(least=-1)
    """The number of buckets that are left of a pruned dictionary; −1 for one that is not."""

    @property
    def shortest(self) -> int:
        """The characters of the shortest n-grams."""
        return max(1, self.minn)

    @property
    def inputs(self) -> int:
        """The rows of the input matrix."""
        return self.words + (self.bucket if self.pruned < 0 else self.pruned)

    @property
    def outputs(self) -> int:
        """The rows of the output matrix."""
        return self.labels if self.model == _SUPERVISED else self.words


class _Foreign(Exception):
    """A file is none of fastText's."""


class _Damage(Exception):
    """What is wrong in a file."""


@dataclass(frozen=True, kw_only=True)
class FastTextFile:
    """A file that has been checked, mapped into memory: none of it takes memory before it is read."""

    content: mmap.mmap
    header: Header
    entries: np.ndarray | None
    """int64 [entries]: where the entries of the dictionary begin; None where these were not checked again."""
    dictionary_end: int
    """Where the dictionary ends, which begins behind the header."""
    quantised: bool
    input_start: int
    """Where the numbers of the input matrix start."""


def open_file(path: Path | str, *, dictionary_end: int | None = None) -> FastTextFile:
    """Map a fastText `.bin` file, all of which is as it says.

    `dictionary_end` is where the dictionary ends, for who knows that its bytes have not changed since they were
    checked: they are not checked again.
    Raises `InputError` when the file is missing, foreign, truncated or damaged.
    """
    require_file(path)
    size = os.path.getsize(path)
    try:
        if not size:
            raise struct.error
        with open(path, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _Walk(content).to_the_end(dictionary_end)
    except struct.error:
        raise InputError(f"{path} is truncated ({size:,} bytes): download or train it again") from None
    except _Foreign:
        raise InputError(f"{path} is not a fastText .bin file (of version 11 or 12): give one that is") from None
    except _Damage as error:
        raise InputError(f"{path} is damaged ({error}): download or train it again") from None


def vector_width(path: Path | str) -> int:
    """E of a fastText `.bin` file, which is checked; see `open_file`."""
    return open_file(path).header.dim


class _Walk:
    """Steps through a file from part to part, and keeps the position that has been reached."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content = content
        self.position = _START.size

    def to_the_end(self, dictionary_end: int | None) -> FastTextFile:
        """Check all parts. Raises `struct.error` when the file ends before that."""
        magic, version = _START.unpack_from(self.content)
        if magic != MAGIC or version not in _VERSIONS:
            raise _Foreign
        self.header = Header(*self.take(_HEADER))
        if version == _VERSIONS[0] and self.header.model == _SUPERVISED:
            self.header = replace(self.header, maxn=0)  # as the library does: those of before had no n-grams
        self.check_header()
        entries = self.check_dictionary() if dictionary_end is None else None
        self.position = dictionary_end = dictionary_end or self.position
        quantised = self.flag("quantised")
        if self.header.pruned >= 0 and not quantised:
            raise _Damage("its dictionary is pruned, but its matrix is not quantised")
        input_start = self.position + _DENSE.size
        self.check_matrix("input", quantised, self.header.inputs)
        quantised_output = self.flag("quantised output")
        if quantised_output and not quantised:
            raise _Damage("its output matrix is quantised, but its input matrix is not")
        self.check_matrix("output", quantised_output, self.header.outputs)
        if self.position > len(self.content):
            raise struct.error
        if self.position < len(self.content):
            raise _Damage(f"{len(self.content) - self.position:,} bytes follow its end")
        return FastTextFile(
            content=self.content,
            header=self.header,
            entries=entries,
            dictionary_end=dictionary_end,
            quantised=quantised,
            input_start=input_start,
        )

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        values = form.unpack_from(self.content, self.position)
        self.position += form.size
        return values

    def flag(self, name: str) -> bool:
        (value,) = self.take(_FLAG)
        if value > 1:
            raise _Damage(f"the flag {name} must be 0 or 1, not {value}")
        return bool(value)

    def check_header(self) -> None:
        header = self.header
        try:
            check_settings(header, "{}".format)
        except InputError as error:
            raise _Damage(str(error)) from None
        if header.entries != header.words + header.labels:
            raise _Damage(f"{header.entries:,} entries are not {header.words:,} words and {header.labels:,} labels")
        if header.bucket == 0 and header.maxn >= header.shortest:
            raise _Damage(f"bucket must be at least 1, not 0, with subwords of {header.minn} to {header.maxn} letters")
        if header.inputs >= 1 << 31:
            raise _Damage(f"{header.inputs:,} rows are more than fastText can have")
        if header.outputs < 1:
            raise _Damage("a supervised model must have labels")

    def check_dictionary(self) -> np.ndarray:
        """Check the entries; returns int64 [entries], where each begins."""
        header, start = self.header, self.position
        found, begins = bytearray(), array("q")
        for entry in islice(_ENTRY.finditer(self.content, start), header.entries):
            if entry[2] is None:
                if entry.end() + COUNT_AND_TYPE.itemsize < len(self.content):
                    raise _Damage("a word of its dictionary is longer than 1 MiB")
                raise struct.error
            found += entry[2]
            begins.append(entry.start())
            self.position = entry.end()
        entries = np.frombuffer(found, COUNT_AND_TYPE)
        counts, types = entries["count"], entries["type"]
        if len(entries) < header.entries:
            raise struct.error
        if types[: header.words].any() or (types[header.words :] != 1).any():
            raise _Damage(f"its dictionary does not have {header.words:,} words and then {header.labels:,} labels")
        if counts.min() < 0 or counts.max() >= _MOST_COUNT:
            raise _Damage("its dictionary has a word with an impossible count")
        outputs = counts[header.words :] if header.model == _SUPERVISED else counts[: header.words]
        if header.loss == _HIERARCHICAL_SOFTMAX and (outputs.min() < 1 or (np.diff(outputs) > 0).any()):
            raise _Damage("the counts of its dictionary do not fall, as those of a tree have to")
        letters = self.position - start - (COUNT_AND_TYPE.itemsize + 1) * len(entries)
        subwords = (letters + 2 * len(entries)) * max(0, header.maxn + 1 - header.shortest)
        if 4 * subwords > 16 * len(self.content) + (1 << 30):
            raise _Damage(f"its words have about {subwords:,} subwords of {header.minn} to {header.maxn} letters")
        if header.pruned > 0:
            self.check_pruned()
        return np.frombuffer(begins, np.int64)

    def check_pruned(self) -> None:
        """The buckets that are left: pairs of the number that a bucket had and its number now."""
        end = self.position + 8 * self.header.pruned
        if end > len(self.content):
            raise struct.error
        pairs = np.frombuffer(self.content[self.position : end], "<i4").reshape(-1, 2)
        if pairs.min() < 0 or (pairs.max(axis=0) >= (self.header.bucket, self.header.pruned)).any():
            raise _Damage("its pruned dictionary names buckets that it does not have")
        self.position = end

    def check_matrix(self, name: str, quantised: bool, rows: int) -> None:
        norms, *sizes, code_bytes = self.take(_QUANTISED) if quantised else (0, *self.take(_DENSE), 0)
        columns = self.header.dim
        if sizes != [rows, columns]:
            found, expected = (f"{each[0]:,} × {each[1]:,}" for each in (sizes, (rows, columns)))
            raise _Damage(f"its {name} matrix is {found}, where {expected} are expected")
        if not quantised:
            self.position += 4 * rows * columns
            return
        if norms > 1 or not 0 < code_bytes <= rows * columns:
            raise _Damage(f"its {name} matrix has {code_bytes:,} bytes of codes for {rows:,} × {columns:,} numbers")
        self.position += code_bytes
        parts = self.check_quantiser(name, columns)
        if code_bytes != parts * rows:
            raise _Damage(f"its {name} matrix has {code_bytes:,} bytes of codes, where {parts * rows:,} are expected")
        if norms:
            self.position += rows
            self.check_quantiser(name, 1)

    def check_quantiser(self, name: str, columns: int) -> int:
        """The parts into which a quantiser cuts the columns of a matrix; steps over it."""
        found = self.take(_QUANTISER)
        part = found[2]
        if part < 1 or found != (columns, -(-columns // part), part, columns % part or part):
            raise _Damage(f"the quantiser of its {name} matrix does not fit {columns:,} columns")
        self.position += 4 * _CENTROIDS * columns
        return found[1]
