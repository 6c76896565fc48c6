"""FastText files: where words, counts and rows are in the bytes of a `.bin` file, and
which n-grams a word is made of.
"""

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from elmoc.errors import InputError

# The widest word vectors that are read: a damaged number can say any width.
MAX_SIZE = 1 << 16
_MAGIC = 793712314
# How a file begins.
BEGINNING = struct.pack("<i", _MAGIC)
# Among the kinds of model.
_SUPERVISED = 3
# A file begins with its magic, its version, and the fields of `Header` among others.
# The dictionary follows.
_START = struct.Struct("<3i24x4i12x3i8xq")
DICTIONARY = _START.size
# A dictionary has for each word, then for each label: its bytes, a zero byte, its count
# (8 bytes) and its type (1 byte).
_BEHIND_WORD = 10
# Whether a matrix is quantised, its rows and columns. Its numbers follow.
_MATRIX = struct.Struct("<?2q")
BAD_DICTIONARY = (
    "its dictionary is truncated, or has other words and labels than its header says"
)
_QUANTISED = (
    "it is a quantised fastText model (.ftz), which is not read: take the .bin file "
    "that it was made of, or have fastText write the vectors of your words (fasttext "
    "print-word-vectors MODEL.ftz < words.txt > words.vec)"
)

# The hash FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
_BASIS = np.uint32(2166136261)
_PRIME = np.uint32(16777619)


@dataclass(frozen=True)
class NgramKind:
    """fastText's n-grams (Bojanowski et al. 2017, Section 3.2), by their lengths and
    the number of buckets that they are hashed into.
    """

    buckets: Annotated[int, Meta(ge=1, le=1 << 31)]
    shortest: Annotated[int, Meta(ge=1)]
    longest: Annotated[int, Meta(le=100)]

    def of_words(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """All n-grams of the words, in fastText's order.

        They are found as by `push_subwords` in fasttext.cpp: in the characters of the
        word between < and >, without < and > alone.

        Returns:
            Two arrays int64 [n]: the place of the word of each n-gram, and its bucket.
        """
        encoded = [b"<%b>" % word.encode("utf-8", "surrogatepass") for word in words]
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        # Of UTF-8, bytes that begin with the bits 10 go on with a character.
        begins = np.flatnonzero((text & 0xC0) != 0x80)
        lengths = np.diff(begins, append=len(text))
        # fastText hashes bytes as signed numbers.
        signed = text.view(np.int8).astype(np.int32).view(np.uint32)
        word_ends = np.cumsum([len(each) for each in encoded])
        # Of each character, by its number: its word, and the last one of that word.
        word_of = np.searchsorted(word_ends, begins, side="right")
        last = np.searchsorted(begins, word_ends)[word_of] - 1
        starts = np.arange(len(begins))
        is_mark = (np.diff(word_of, prepend=-1) != 0) | (starts == last)
        hashes = np.full(len(begins), _BASIS)
        found = [np.empty(0, np.int64)]
        buckets = [np.empty(0, np.int64)]
        # N-grams of one length are hashed together, each from the hash of the n-gram
        # that is a character shorter.
        for length in range(1, self.longest + 1):
            ends = starts + length - 1
            is_inside = ends <= last[starts]
            starts = starts[is_inside]
            hashes = hashes[is_inside]
            added = ends[is_inside]
            # A character has four bytes at most.
            for byte in range(4):
                has = lengths[added] > byte
                places = begins[added[has]] + byte
                hashes[has] = (hashes[has] ^ signed[places]) * _PRIME
            if length >= self.shortest:
                kept = ~is_mark[starts] if length == 1 else slice(None)
                found.append(starts[kept])
                buckets.append(hashes[kept].astype(np.int64) % self.buckets)
        first = np.concatenate(found)
        order = np.argsort(first, kind="stable")
        return word_of[first[order]], np.concatenate(buckets)[order]


@dataclass(frozen=True)
class Header:
    """The sizes of a file, by fastText's names.

    pruned: −1, a dictionary that is not pruned; the number of its n-grams in other
        files, which are quantised.
    """

    dim: int
    model: int
    bucket: int
    minn: int
    maxn: int
    entries: int
    words: int
    labels: int
    pruned: int

    @property
    def ngrams(self) -> NgramKind:
        """How words are made of n-grams."""
        return NgramKind(max(1, self.bucket), max(1, self.minn), self.maxn)

    @property
    def has_ngrams(self) -> bool:
        """Whether words are made of any."""
        return self.maxn >= self.ngrams.shortest


def read_header(content: mmap.mmap) -> Header:
    """The header of a file, if its sizes can be true: look-ups believe them."""
    magic, version, *numbers = _START.unpack_from(content)
    if magic != _MAGIC or version not in (11, 12):
        raise ValueError("it is not a fastText .bin file of version 11 or 12")
    header = Header(*numbers)
    if version == 11 and header.model == _SUPERVISED:
        # As the library does: classifiers of that version had no n-grams.
        header = replace(header, maxn=0)
    possible = [
        1 <= header.dim <= MAX_SIZE,
        header.bucket > 0 or (header.bucket == 0 and not header.has_ngrams),
        header.minn >= 0,
        0 <= header.maxn <= 100,
        header.words >= 1,
        header.labels >= 0,
        header.words + header.bucket < 1 << 31,
        header.entries == header.words + header.labels,
        header.entries * _BEHIND_WORD <= len(content),
    ]
    if not all(possible):
        raise ValueError("the sizes in its header cannot be true")
    if header.pruned != -1:
        raise InputError(_QUANTISED)
    return header


def check_matrices(content: mmap.mmap, header: Header, position: int) -> None:
    """Compare the matrices behind the dictionary, which ends at a position, with the
    header and the size of the file.
    """
    outputs = header.labels if header.model == _SUPERVISED else header.words
    for rows in (header.words + header.bucket, outputs):
        quantised, *sizes = _MATRIX.unpack_from(content, position)
        if quantised:
            raise InputError(_QUANTISED)
        if sizes != [rows, header.dim]:
            raise ValueError(f"a matrix is not of {rows:,} × {header.dim:,} numbers")
        position += _MATRIX.size + 4 * rows * header.dim
    if position != len(content):
        raise ValueError(
            f"it has {len(content):,} bytes where {position:,} are expected"
        )


def read_dictionary(
    content: mmap.mmap, header: Header
) -> tuple[list[tuple[bytes, int]], int]:
    """The entries with their counts, and where the dictionary ends."""
    entries = []
    position = DICTIONARY
    for number in range(header.entries):
        end = content.find(b"\0", position)
        behind = content[end : end + _BEHIND_WORD]
        if (
            end < 0
            or len(behind) < _BEHIND_WORD
            or behind[-1] != (number >= header.words)
        ):
            raise ValueError(BAD_DICTIONARY)
        entries.append((content[position:end], int.from_bytes(behind[1:9], "little")))
        position = end + _BEHIND_WORD
    return entries, position


def input_rows(content: mmap.mmap, header: Header, dictionary_end: int) -> np.ndarray:
    """float32 [words + buckets, E], mapped: its numbers may lie at any byte."""
    return np.ndarray(
        (header.words + header.bucket, header.dim),
        np.float32,
        content,
        dictionary_end + _MATRIX.size,
    )
