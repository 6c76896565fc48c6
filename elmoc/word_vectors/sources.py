"""Sources of word vectors: the `WordVectors` protocol, text files, and random vectors."""

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import absolute_path, read_lines
from elmoc.settings import setting
from elmoc.word_vectors.fasttext.file import MAX_SIZE
from elmoc.word_vectors.foreign import NOT_SINGLE_SPACES

_ROWS = 1 << 14
"""Rows that there is room for at first, where the number of vectors is not known."""
_GIVE_THOSE = "give the word vectors that it was trained with, wherever they are now"


class WordVectors(Protocol):
    """A fixed function from strings to vectors of `size` (E) dimensions."""

    size: int
    origin: str
    """The string from which `open_word_vectors` opens the same vectors again."""

    @property
    def fingerprint(self) -> str:
        """A name of the function: equal fingerprints, equal vectors."""

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E], of finite numbers; a word that has no vector gets zeros."""


@dataclass(frozen=True)
class VectorSource:
    """Which word vectors a model reads, or is trained against, as model directories record it."""

    origin: str
    fingerprint: str
    size: int = setting(least=1, most=MAX_SIZE)
    post_processing: str = setting()
    """The name of the transform's kind."""

    @property
    def file_name(self) -> str:
        """The name of the file of them, where it is in a model directory."""
        return Path(self.origin).name

    def same_as(self, other: "VectorSource") -> bool:
        """Whether both are the same vectors, transformed in the same way, wherever the files are."""
        return replace(self, origin=other.origin) == other


def check_vectors(vectors: WordVectors, source: VectorSource) -> None:
    """Raise an `InputError` unless `vectors` are the ones that `source` names."""
    if vectors.size != source.size:
        raise InputError(
            f"{vectors.origin} has {vectors.size} dimensions, but the model reads {source.size}: {_GIVE_THOSE}"
        )
    if vectors.fingerprint != source.fingerprint:
        raise InputError(
            f"{vectors.origin} (fingerprint {vectors.fingerprint}) are not the word vectors of this model "
            f"({source.origin}, fingerprint {shortened(source.fingerprint)}): {_GIVE_THOSE}"
        )


class TextVectors:
    """Vectors from a text file (`.vec`, GloVe's `.txt`, either also `.gz`): a word and E numbers a line.

    A first line with two numbers (fastText's and word2vec's header) says how many vectors there are and how wide.
    Only the words of the file have vectors; any other gets zeros. `only` keeps memory small: other words of the file
    are passed over. Of a word that is there twice the first vector counts.
    Raises `InputError` with the line number for a line of another width, or with something that is not a finite number.
    """

    def __init__(self, path: Path | str, only: Collection[str] | None = None) -> None:
        self.origin = absolute_path(path)
        self._path = path
        wanted = None if only is None else set(only)
        rows: _GrowingRows | None = None
        self._rows: dict[str, int] = {}
        self.size, read, expected = 0, 0, None
        for number, line in enumerate(read_lines(path), 1):
            if number == 1 and (header := re.fullmatch(r"([0-9]{1,18}) ([0-9]{1,18}) *", line)):
                expected, self.size = map(int, header.groups())
                self._require_width(self.size, number)
                continue
            read += 1
            if not self.size:
                self.size = line.rstrip(" ").count(" ")
                self._require_width(self.size, number)
            word, numbers = self._split(line, number)
            if word in self._rows or (wanted is not None and word not in wanted):
                continue
            rows = rows or _GrowingRows(self._most_rows(expected, wanted), self.size)
            self._rows[word] = rows.add(self._parsed(numbers, number))
        if expected is not None and read < expected:
            raise InputError(f"{path} has {read:,} vectors where its first line says {expected:,}: download it again")
        if not read:
            raise InputError(f"{path} holds no vectors: give a file with a word and its numbers on each line")
        rows = rows or _GrowingRows(1, self.size)
        self._missing = rows.add(np.zeros(self.size, dtype=np.float32))  # for the words that are not there
        self._vectors = rows.array

    def _most_rows(self, expected: int | None, wanted: set[str] | None) -> int:
        """How many rows to make room for at first: those that the first line says, as far as the file can hold them."""
        least_bytes = 2 * self.size  # of a line: a space and a digit for each number
        counts = [_ROWS if expected is None else expected, os.path.getsize(self._path) // least_bytes]
        return 1 + min(counts if wanted is None else [*counts, len(wanted)])

    def _require_width(self, size: int, line: int) -> None:
        if not 2 <= size <= MAX_SIZE:
            raise InputError(
                f"{self._path}, line {line}: vectors of {size:,} numbers, where 2 to {MAX_SIZE:,} are expected: give a "
                "file with a word and its numbers on each line"
            )

    def _split(self, line: str, number: int) -> tuple[str, list[str]]:
        """The word of a line and its numbers, not yet parsed."""
        fields = line.rstrip(" ").rsplit(" ", self.size)
        # a few words of published files hold spaces; but where all before the last E fields is numbers, these are more
        _, *more = re.split("[ \t]", fields[0])
        if len(fields) <= self.size or (more and all(map(_is_number, more))):
            if "\t" in line:
                raise InputError(f"{self._path}, line {number} {NOT_SINGLE_SPACES}")
            raise InputError(
                f"{self._path}, line {number}: {len(fields) - 1 + len(more):,} numbers where {self.size:,} are "
                "expected, the file may be truncated: download it again"
            )
        return fields[0], fields[1:]

    def _parsed(self, numbers: list[str], line: int) -> np.ndarray:
        try:
            with np.errstate(over="ignore"):
                row = np.array(numbers, dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{self._path}, line {line}: {shortened(str(error))}: download it again") from None
        if not np.isfinite(row).all():
            raise InputError(f"{self._path}, line {line} has numbers that are not finite: download it again")
        return row

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]; zeros for a word that the file lacks."""
        return self._vectors[[self._rows.get(word, self._missing) for word in words]]


class _GrowingRows:
    """Rows of numbers that are added one by one, all in one array."""

    def __init__(self, most: int, width: int) -> None:
        """There is room for `most` rows, and then for twice as many; memory is taken by those that are filled."""
        self._array = np.empty((most, width), dtype=np.float32)
        self._count = 0

    def add(self, row: np.ndarray) -> int:
        """Add a row; returns its index."""
        if self._count == len(self._array):
            larger = np.empty((2 * self._count, self._array.shape[1]), dtype=np.float32)
            larger[: self._count] = self._array
            self._array = larger
        self._array[self._count] = row
        self._count += 1
        return self._count - 1

    @property
    def array(self) -> np.ndarray:
        """float32 [rows, width]."""
        return self._array[: self._count]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class RandomVectors:
    """Standard normal vectors drawn from the word itself and a seed (the paper's ELMo-C_RND, Section 5.1).

    The same seed gives any string the same vector on any machine.
    """

    def __init__(self, *, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size
        self.origin = f"random:{seed}:{size}"

    @property
    def fingerprint(self) -> str:
        """Seed and size, which determine every vector."""
        return self.origin

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        vectors = np.empty((len(words), self.size), dtype=np.float32)
        for row, word in enumerate(words):
            key = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16, key=b"%d" % self.seed)
            generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key.digest(), "little")))
            vectors[row] = generator.standard_normal(self.size, dtype=np.float32)
        return vectors
