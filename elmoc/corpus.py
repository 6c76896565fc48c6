"""Corpus directory: which files it has, how they are read, and how it is finished.

corpus.json         version, counts, the shards of both splits, sources, checksums;
                    written last, so that a directory without it is not a corpus yet
lexicon.txt         one word type a line, most frequent first; id = row
counts.npy          int64 [V], occurrences in the training shards
shards/NAME.bin     little-endian uint32 ids, `<s> … </s>` around every sentence
shards/NAME.documents.npy   int64, for each document of the shard the position of
                    its first `<s>`
subwords.json       of a corpus of subwords, how words are split into them (see
                    `elmoc/word_vectors/subwords.py`)
vectors/NAME.npy    vector tables (see `elmoc/word_vectors/table.py`)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from elmoc.errors import InputError, reading
from elmoc.files.arrays import load_array, save_array
from elmoc.files.checksums import FileChecksum, fingerprint
from elmoc.files.records import read_record, write_record
from elmoc.files.text import open_text

FORMAT = "elmoc-corpus"
VERSION = 2
BEGIN = "<s>"
END = "</s>"
UNKNOWN = "<unk>"
ID_DTYPE = np.dtype("<u4")
# The name of a source, as a pattern: a key of TOML without quotes.
SOURCE_NAME = r"[A-Za-z0-9_-]+"
# The largest weight of a source: how many times it is read or written.
MOST_TIMES = 1_000
SUBWORDS = "subwords.json"
# Characters of `corpus.json`: it has the paths of half a million files.
MOST_CHARACTERS = 1 << 26


@dataclass(frozen=True)
class Shard:
    """One token shard.

    file: its path in the corpus directory.
    tokens: its number of ids, sentence boundaries included.
    sentences: its number of sentences.
    documents: its number of documents.
    source: the kind of its text, by the name that the corpus was built with; "" where
        none was given.
    """

    file: str
    tokens: Annotated[int, Meta(ge=1, lt=2**48)]
    sentences: Annotated[int, Meta(ge=1, lt=2**48)]
    documents: Annotated[int, Meta(ge=1, lt=2**48)]
    source: str = ""

    @property
    def documents_file(self) -> str:
        """Where the positions of its documents are."""
        return f"{self.file.removesuffix('.bin')}.documents.npy"


@dataclass(frozen=True, kw_only=True)
class CorpusRecord:
    """What `corpus.json` holds: `train_tokens` and the like are sums over the shards of
    a split.

    types: V, the number of word types.
    lexicon_fingerprint: a hash of the lexicon; see `lexicon_fingerprint`.
    begin_id: the id of `<s>`.
    end_id: the id of `</s>`.
    unknown_id: the id of `<unk>`, where rare words were left out.
    settings: how the corpus was made.
    sources: the files that it was made of.
    train: the training shards.
    held_out: the shards to evaluate on.
    subwords: whether the types are subwords, and not words.
    checksums: of every file by its path in the directory.
    """

    types: Annotated[int, Meta(ge=2)]
    lexicon_fingerprint: str
    begin_id: int
    end_id: int
    unknown_id: int | None
    train_tokens: int
    train_sentences: int
    train_documents: int
    held_out_tokens: int
    held_out_sentences: int
    held_out_documents: int
    settings: dict[str, Any]
    sources: list[str]
    train: list[Shard]
    held_out: list[Shard]
    subwords: bool = False
    checksums: dict[str, FileChecksum]


class Corpus:
    """A corpus directory opened for reading.

    Args:
        path: of the directory.

    Raises:
        InputError: the directory is missing, unfinished, of another version, or has a
            file that is missing, truncated, or damaged in its first or last block.

    train_tokens: of the training shards, sentence boundaries included.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        file = self.path / "corpus.json"
        if not file.exists():
            raise InputError(
                f"{self.path} is not a finished corpus directory (no corpus.json)"
            )
        record = read_record(
            file,
            CorpusRecord,
            format=FORMAT,
            version=VERSION,
            most=MOST_CHARACTERS,
        )
        self.record = record
        self.types = record.types
        self.begin_id = record.begin_id
        self.train = record.train
        self.held_out = record.held_out
        self.train_tokens = record.train_tokens
        for name, checksum in record.checksums.items():
            checksum.check_ends(self.path / name)

    @property
    def marks(self) -> dict[str, int]:
        """`<s>`, `</s>` and, where there is one, `<unk>`, with their ids."""
        marks = {
            BEGIN: self.begin_id,
            END: self.record.end_id,
            UNKNOWN: self.record.unknown_id,
        }
        return {mark: row for mark, row in marks.items() if row is not None}

    @property
    def sources(self) -> list[str]:
        """The sources of the training shards, in their order; [""] where text was not
        named.
        """
        return list(dict.fromkeys(shard.source for shard in self.train))

    @property
    def held_out_sources(self) -> list[str]:
        """The sources of the held-out shards, in their order; [""] where text was not
        named.
        """
        return list(dict.fromkeys(shard.source for shard in self.held_out))

    @cached_property
    def lexicon(self) -> list[str]:
        """The word types, most frequent first; id = position."""
        path = self.path / "lexicon.txt"
        # Not as text with a byte order mark, by which the first word may begin.
        with reading(path):
            words = path.read_bytes().decode().removesuffix("\n").split("\n")
        if (
            len(words) != self.types
            or lexicon_fingerprint(words) != self.record.lexicon_fingerprint
        ):
            raise InputError(f"{path} is not the lexicon of this corpus")
        return words

    @cached_property
    def counts(self) -> np.ndarray:
        """int64 [V]: occurrences of each type in the training shards."""
        return load_array(self.path / "counts.npy", shape=(self.types,), dtype=np.int64)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Word type → id."""
        return {word: row for row, word in enumerate(self.lexicon)}

    @property
    def unit(self) -> str:
        """The name of its tokens in print."""
        return "subwords" if self.record.subwords else "words"

    def require_words(self) -> None:
        """Raise an `InputError` where the types are subwords."""
        if self.record.subwords:
            raise InputError(
                f"{self.path} is a corpus of subwords: name the corpus of words behind "
                f"it ({self.record.settings.get('words')})"
            )

    def read_shard(
        self, shard: Shard, start: int = 0, end: int | None = None
    ) -> np.ndarray:
        """uint32 [tokens from `start` to `end`], memory-mapped read-only; each is below
        the number of types.
        """
        ids = self.map_shard(shard)[start:end]
        largest = int(ids.max())
        # An id beyond the lexicon would read beyond a table.
        if largest >= self.types:
            raise InputError(
                f"{self.path / shard.file} has the id {largest}, but the corpus has "
                f"{self.types:,} types"
            )
        return ids

    def map_shard(self, shard: Shard) -> np.ndarray:
        """uint32 [tokens], memory-mapped read-only; that they are types of the corpus
        is not checked.
        """
        return np.memmap(self.path / shard.file, ID_DTYPE, "r", shape=(shard.tokens,))

    def read_documents(self, shard: Shard) -> np.ndarray:
        """int64 [documents]: where in the shard each document begins."""
        return load_array(
            self.path / shard.documents_file, shape=(shard.documents,), dtype=np.int64
        )


def tokens_before_sentence(ids: np.ndarray, begin_id: int) -> int:
    """How many tokens stand before the first sentence that begins in `ids`; all, if
    none does.
    """
    # one by one, since a sentence ends soon, and a shard is long
    starts = (index for index, each in enumerate(ids) if each == begin_id)
    return next(starts, len(ids))


def finish_corpus(
    path: Path | str,
    *,
    lexicon: Sequence[str],
    counts: np.ndarray,
    train: Sequence[Shard],
    held_out: Sequence[Shard],
    sources: Sequence[str],
    settings: dict[str, Any],
    subwords: bool = False,
) -> None:
    """Write `lexicon.txt`, `counts.npy` and, last, `corpus.json`, once all else is in
    place.

    Args:
        path: of the corpus directory, which has the shards.
        lexicon: the word types, most frequent first.
        counts: [V], of the types in the training shards.
        train: the training shards.
        held_out: the shards to evaluate on.
        sources: the files that the corpus was made of.
        settings: how it was made.
        subwords: whether the types are subwords.
    """
    path = Path(path)
    with open_text(path / "lexicon.txt") as file:
        file.writelines(f"{word}\n" for word in lexicon)
    save_array(path / "counts.npy", np.asarray(counts, dtype=np.int64))
    files = ["lexicon.txt", "counts.npy"]
    if subwords:
        files.append(SUBWORDS)
    for shard in list(train) + list(held_out):
        files += [shard.file, shard.documents_file]
    row_of = {
        word: row for row, word in enumerate(lexicon) if word in (BEGIN, END, UNKNOWN)
    }
    record = CorpusRecord(
        types=len(lexicon),
        lexicon_fingerprint=lexicon_fingerprint(lexicon),
        begin_id=row_of[BEGIN],
        end_id=row_of[END],
        unknown_id=row_of.get(UNKNOWN),
        train_tokens=sum(shard.tokens for shard in train),
        train_sentences=sum(shard.sentences for shard in train),
        train_documents=sum(shard.documents for shard in train),
        held_out_tokens=sum(shard.tokens for shard in held_out),
        held_out_sentences=sum(shard.sentences for shard in held_out),
        held_out_documents=sum(shard.documents for shard in held_out),
        settings=settings,
        sources=list(sources),
        train=list(train),
        held_out=list(held_out),
        subwords=subwords,
        checksums={name: FileChecksum.of(path / name) for name in files},
    )
    write_record(path / "corpus.json", record, format=FORMAT, version=VERSION)


def lexicon_fingerprint(words: Sequence[str]) -> str:
    """The content hash by which vector tables name the lexicon they belong to."""
    return fingerprint(["\n".join(words).encode("utf-8")])
