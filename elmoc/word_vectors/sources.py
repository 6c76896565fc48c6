"""Sources of word vectors: the `WordVectors` protocol, fastText `.bin` files, text files, and random vectors.

`open_word_vectors` opens any of them from the one string that commands take and model directories record.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import read_lines
from elmoc.word_vectors.fasttext_file import vector_width


class WordVectors(Protocol):
    """A fixed function from strings to vectors of `size` (E) dimensions."""

    size: int
    origin: str
    """The string from which `open_word_vectors` opens the same vectors again."""

    @property
    def fingerprint(self) -> str:
        """A name of the function: equal fingerprints, equal vectors."""

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]; a word that has no vector gets zeros."""


@dataclass(frozen=True)
class VectorSource:
    """Which word vectors a model reads, or is trained against, as model directories record it."""

    origin: str
    fingerprint: str
    size: int
    post_processing: str
    """The name of the transform's kind."""

    def same_as(self, other: "VectorSource") -> bool:
        """Whether both are the same vectors, transformed in the same way, wherever the files are."""
        return replace(self, origin=other.origin) == other


class FastTextVectors:
    """A fastText `.bin` model: every string has a vector, made of its character n-grams.

    Raises `InputError` when the file is missing, truncated or something else.
    """

    def __init__(self, path: Path | str) -> None:
        self.origin = str(Path(path).resolve())
        self.size = vector_width(path)
        import fasttext

        try:
            self._model = fasttext.load_model(self.origin)
        except (ValueError, MemoryError) as error:
            raise InputError(f"{path} cannot be loaded by fastText ({error})") from None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]: fastText's vector of each string."""
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        for row, word in enumerate(words):
            vectors[row] = self._model.get_word_vector(word)
        return vectors


class TextVectors:
    """Vectors from a text file (`.vec`, GloVe's `.txt`, either also `.gz`): a word and E numbers a line.

    A first line with two numbers (fastText's and word2vec's header) says how many vectors there are and how wide.
    Only the words of the file have vectors; any other gets zeros. `only` keeps memory small: other words of the file
    are passed over.
    Raises `InputError` with the line number for a line of another width or with something that is not a number.
    """

    def __init__(self, path: Path | str, only: Collection[str] | None = None) -> None:
        self.origin = str(Path(path).resolve())
        self.size = 0
        wanted = None if only is None else set(only)
        rows: list[np.ndarray] = []
        self._rows: dict[str, int] = {}
        read, expected = 0, None
        for number, line in enumerate(read_lines(path), 1):
            fields = line.rstrip(" ").split(" ")
            if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
                expected, self.size = int(fields[0]), int(fields[1])
                continue
            read += 1
            self.size = self.size or len(fields) - 1
            word = " ".join(fields[: -self.size])  # a few words of published files hold spaces
            if len(fields) <= self.size or self.size < 2:
                raise InputError(
                    f"{path}, line {number}: {len(fields) - 1} numbers where {self.size} are expected; the file may "
                    "be truncated"
                )
            if word in self._rows or (wanted is not None and word not in wanted):
                continue
            try:
                rows.append(np.array(fields[-self.size :], dtype=np.float32))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from None
            self._rows[word] = len(rows) - 1
        if expected is not None and read < expected:
            raise InputError(f"{path} has {read:,} vectors where its first line says {expected:,}: download it again")
        if not read:
            raise InputError(f"{path} holds no vectors")
        # one more row, of zeros, for the words that are not there
        self._vectors = np.stack([*rows, np.zeros(self.size, dtype=np.float32)])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file's size and of blocks spread over its content."""
        return fingerprint_file(self.origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), E]; zeros for a word that the file lacks."""
        missing = len(self._vectors) - 1
        return self._vectors[[self._rows.get(word, missing) for word in words]]


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


def open_word_vectors(origin: str, only: Collection[str] | None = None) -> WordVectors:
    """Open word vectors from `FILE.bin`, `FILE.vec[.gz]`, `FILE.txt[.gz]`, or `random:SEED:SIZE`.

    `only` lists the words that will be asked for, where that is known: a text file then takes less memory.
    """
    if origin.startswith("random:"):
        try:
            seed, size = (int(number) for number in origin.split(":")[1:])
            if seed < 0 or size < 1:
                raise ValueError
        except ValueError:
            raise InputError(f"{origin!r} is not of the form random:SEED:SIZE, for instance random:1:300") from None
        return RandomVectors(seed=seed, size=size)
    if origin.endswith(".bin"):
        return FastTextVectors(origin)
    if origin.removesuffix(".gz").endswith((".vec", ".txt")):
        return TextVectors(origin, only)
    raise InputError(
        f"{origin}: word vectors are a fastText .bin file, a text .vec or .txt file (also .gz), or random:SEED:SIZE"
    )
