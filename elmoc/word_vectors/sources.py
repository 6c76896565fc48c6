"""Sources of word vectors: the `WordVectors` protocol, text files, random vectors."""

import os
import re
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Protocol, get_args

import numpy as np
import xxhash
from msgspec import Meta

from elmoc.errors import InputError, reading, shortened
from elmoc.files.arrays import all_finite
from elmoc.files.checksums import FileChecksum, fingerprint_file
from elmoc.files.text import read_lines
from elmoc.word_vectors.fasttext_file import MAX_SIZE

# What is done to raw vectors, once `<s>` and `</s>` have vectors.
TransformKind = Literal["none", "centre", "whiten"]
TRANSFORMS = get_args(TransformKind)
# The first line of fastText's and word2vec's text files: number and width of vectors.
_HEADER = re.compile(r"([0-9]{1,18}) ([0-9]{1,18}) *")
_NUMBER_OR_NOTHING = re.compile(r"([-+]?\.?\d[-+.\deE]*)?")


class WordVectors(Protocol):
    """A fixed function from strings to vectors.

    size: E.
    origin: from which `open_word_vectors` opens the same vectors again.
    """

    size: int
    origin: str

    @property
    def fingerprint(self) -> str:
        """A name of the function: equal fingerprints, equal vectors."""

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E], of finite numbers; a word that has no vector gets
        zeros.
        """


@dataclass(frozen=True)
class VectorSource:
    """Which word vectors a model reads, or is trained against, as model directories
    record it.

    checksum: of their file when it was first read; None where they have none, or it
        goes with the model. A fingerprint does not cover all of a large file.
    about: the model that they were taken from, and its licence, if they were.
    """

    origin: str
    fingerprint: str
    size: Annotated[int, Meta(ge=1, le=MAX_SIZE)]
    post_processing: TransformKind
    checksum: FileChecksum | None = None
    about: str | None = None

    @classmethod
    def of(cls, vectors: WordVectors, post_processing: TransformKind) -> "VectorSource":
        """The source of vectors; all of their file is read, if they have one."""
        origin = vectors.origin
        checksum = FileChecksum.of(origin) if os.path.isfile(origin) else None
        return cls(
            origin,
            vectors.fingerprint,
            vectors.size,
            post_processing,
            checksum=checksum,
            about=getattr(vectors, "about", None),
        )

    @property
    def file_name(self) -> str:
        """The name of their file, where it is in a model directory."""
        return Path(self.origin).name

    def same_as(self, other: "VectorSource") -> bool:
        """Whether both are the same vectors, transformed in the same way, wherever the
        files are.
        """
        return replace(self, origin=other.origin, checksum=other.checksum) == other


def check_vectors(vectors: WordVectors, source: VectorSource) -> None:
    """Check that `vectors` are the ones that `source` names.

    Raises:
        InputError: they are others.
    """
    if (vectors.size, vectors.fingerprint) != (source.size, source.fingerprint):
        raise InputError(
            f"{vectors.origin} (fingerprint {vectors.fingerprint}) are not the word "
            f"vectors of this model ({source.origin}, fingerprint "
            f"{source.fingerprint}, {source.size} numbers)"
        )


def finite(vectors: np.ndarray, words: Sequence[str], origin: str) -> np.ndarray:
    """The vectors of words [n, E], all of whose numbers have to be finite.

    Raises:
        InputError: names a word whose vector has another.
    """
    if not all_finite(vectors):
        word = words[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
        raise InputError(
            f"{origin}: the vector of {shortened(word)!r} has numbers that are not "
            "finite"
        )
    return vectors


class TextVectors:
    """Vectors from a text file (`.vec`, GloVe's `.txt`, plain or packed): a word and
    E numbers a line.

    A first line with two numbers says how many vectors there are and how wide. Where a
    word is there twice, the first vector counts. A file without any capital letter, as
    GloVe 6B, answers `Paris` by `paris`.

    Args:
        path: the file.
        only: the words that are kept, to save memory; None is all.

    Raises:
        InputError: a line is of another width, or has a number that is not finite; it
            names the line. Or there are fewer vectors than the first line says.
    """

    def __init__(self, path: Path | str, only: Collection[str] | None = None) -> None:
        self.origin = os.path.abspath(path)
        wanted = None if only is None else {*only, *map(str.lower, only)}
        self._is_lower_case = True
        self._rows: dict[str, int] = {}
        self.size = 0
        read = expected = 0
        numbers = array("f")
        for line_number, line in enumerate(read_lines(path), 1):
            header = _HEADER.fullmatch(line) if line_number == 1 else None
            if header is not None:
                expected = int(header[1])
                self.size = int(header[2])
                continue
            read += 1
            with reading(f"{path}, line {line_number}"):
                self.size = self.size or line.rstrip(" ").count(" ")
                word, *fields = self._fields(line)
                self._is_lower_case = self._is_lower_case and word == word.lower()
                if word not in self._rows and (wanted is None or word in wanted):
                    # A number that is too large for float32 becomes infinite.
                    with np.errstate(over="ignore"):
                        row = np.array(fields, dtype=np.float32)
                    if not np.isfinite(row).all():
                        raise InputError("a number is not finite")
                    numbers.frombytes(row.tobytes())
                    self._rows[word] = len(self._rows)
        if not read:
            raise InputError(f"{path} has no vectors")
        if read < expected:
            raise InputError(
                f"{path} has {read:,} vectors where its first line says {expected:,}: "
                "download it again or, where this is what you want, correct its first "
                f"line to '{read} {self.size}'"
            )
        # A row of zeros for words that are not there.
        numbers.frombytes(bytes(4 * self.size))
        self._vectors = np.frombuffer(numbers, np.float32).reshape(-1, self.size)

    def _fields(self, line: str) -> list[str]:
        """The word of a line, and its numbers, not yet parsed."""
        fields = line.rstrip(" ").rsplit(" ", self.size)
        # A few words of published files hold spaces. But where everything between the
        # first and the last E fields is a number, there are more than E numbers; where
        # it is nothing, there are two spaces.
        _, *more = re.split("[ \t]", fields[0][:MAX_SIZE])
        is_wider = bool(more) and all(map(_NUMBER_OR_NOTHING.fullmatch, more))
        is_possible = 2 <= self.size <= MAX_SIZE
        if len(fields) <= self.size or is_wider or not is_possible:
            wanted = f"{self.size:,}" if is_possible else f"2 to {MAX_SIZE:,}"
            raise InputError(
                f"{shortened(line, 40)!r} stands where a word and {wanted} numbers are "
                "expected, with single spaces"
            )
        return fields

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]; zeros for a word that the file lacks."""
        # The last row is zeros.
        rows = [self._rows.get(word, -1) for word in words]
        if self._is_lower_case:
            for place, word in enumerate(words):
                if rows[place] < 0:
                    rows[place] = self._rows.get(word.lower(), -1)
        return self._vectors[rows]


class RandomVectors:
    """Standard normal vectors drawn from the word itself and a seed (the paper's
    ELMo-C_RND, Section 5.1).

    The same seed gives any string the same vector on any machine; seed and size are the
    fingerprint.
    """

    def __init__(self, *, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size
        self.fingerprint = self.origin = f"random:{seed}:{size}"

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]."""
        vectors = np.empty((len(words), self.size), dtype=np.float32)
        for vector, word in zip(vectors, words, strict=True):
            name = f"{self.seed} {word}".encode("utf-8", "surrogatepass")
            # With another hash the formats of models and tables need another number:
            # it would draw other vectors than they were made with.
            bits = np.random.Philox(key=xxhash.xxh3_128_intdigest(name))
            np.random.Generator(bits).standard_normal(out=vector, dtype=np.float32)
        return vectors
