"""Pieces of text: how are files divided among workers, and how is a piece numbered?

A piece is what one worker reads: a part of a large plain file, one whole file of
another kind (which cannot be entered in the middle), or several small files. The
division depends on the files and the wanted size alone, never on the workers.

Before the lexicon of the whole corpus is known, a piece numbers its word types in the
order in which they first occur, and is kept in a folder of its own, which appears when
all of it is written:

    ids.bin         little-endian uint32 ids of this piece, `<s> … </s>` around every
                    sentence
    documents.npy   int64, the positions of the first `<s>` of every document
    lexicon.txt     the types; id = line
    piece.json      where its shards end, and how many sentences were left out
"""

import json
import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import count, islice
from pathlib import Path

import numpy as np

from data_scripts.parts.tokenising import Tokeniser
from elmoc.batches import buffered
from elmoc.corpus import BEGIN, END, ID_DTYPE
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_directory
from elmoc.settings import convert
from elmoc.text.documents import (
    BYTES_PER_TOKEN,
    TextRange,
    lines_of,
    read_documents,
    reader_of,
)
from elmoc.text.named_files import AnyPath
from elmoc.text.overlap import Overlap

# Words that are numbered at once: some 50 MB as Python's strings.
BLOCK_WORDS = 500_000
# The ids of `<s>` and `</s>` in each piece.
_BEGIN_ID = 0
_END_ID = 1

# How the raw text of a file is tokenised; files without one are tokenised already.
Tokenisers = Mapping[AnyPath, Tokeniser]


@dataclass(frozen=True)
class TextPiece:
    """Parts of files, in their order, all of one source and one split.

    parts: of the files.
    held_out: whether it is of the held-out text.
    shard_tokens: about how many tokens a shard of it has.
    source: the kind of its text; "" where text was not named.
    """

    parts: tuple[TextRange, ...]
    held_out: bool
    shard_tokens: int
    source: str = ""


def cut_pieces(
    files: Sequence[AnyPath], shard_tokens: int, held_out: bool, source: str = ""
) -> list[TextPiece]:
    """Divide files, all of one source, into pieces of about a shard each, in the order
    of the files.

    Less than half a shard at the end is in one piece with the text before it: the last
    shard may be held out.
    """
    piece_bytes = shard_tokens * BYTES_PER_TOKEN
    pieces: list[list[TextRange]] = []
    # Bytes of the last piece; infinite where no small file may follow in it.
    last = math.inf
    for file in files:
        reader = reader_of(file)
        size = reader.text_bytes(file)
        parts = reader.divide(file, piece_bytes)
        if len(parts) > 1:
            pieces += [[part] for part in parts]
            last = math.inf
        elif last + size <= 1.25 * piece_bytes:
            pieces[-1] += parts
            last += size
        else:
            pieces.append(parts)
            last = size
    if len(pieces) > 1 and 2 * last < piece_bytes:
        rest = pieces.pop()
        pieces[-1] += rest
    return [TextPiece(tuple(each), held_out, shard_tokens, source) for each in pieces]


@dataclass(frozen=True)
class _PieceRecord:
    """What `piece.json` holds."""

    shard_ends: list[int]
    left_out: int


class NumberedPiece:
    """A finished piece of `text`: its planned `shards` in their order, and the number
    of sentences that were `left_out`.
    """

    def __init__(self, text: TextPiece, folder: Path) -> None:
        path = folder / "piece.json"
        record = convert(read_json(path), _PieceRecord, where=str(path))
        self.text = text
        self.folder = folder
        self.left_out = record.left_out
        self.shards: list[PlannedShard] = []
        start = 0
        for end in record.shard_ends:
            self.shards.append(PlannedShard(self, start, end, text.held_out))
            start = end

    @cached_property
    def documents(self) -> np.ndarray:
        """int64: where documents begin."""
        documents: np.ndarray = np.load(self.folder / "documents.npy")
        return documents

    @property
    def lexicon(self) -> list[str]:
        """Its word types; id = position."""
        text = (self.folder / "lexicon.txt").read_text(encoding="utf-8")
        return text.split("\n")[:-1]


@dataclass(frozen=True)
class PlannedShard:
    """The tokens [start, end) of a numbered piece, which are to become a shard of one
    split.
    """

    piece: NumberedPiece
    start: int
    end: int
    held_out: bool

    @property
    def ids(self) -> np.ndarray:
        """uint32 [tokens], memory-mapped: ids of the piece."""
        ids = np.memmap(self.piece.folder / "ids.bin", dtype=ID_DTYPE, mode="r")
        return ids[self.start : self.end]

    @property
    def documents(self) -> np.ndarray:
        """int64: where documents begin in the shard; its first token always begins
        one.
        """
        documents = self.piece.documents
        first, last = np.searchsorted(documents, [self.start + 1, self.end])
        inside = documents[first:last] - self.start
        return np.concatenate([[0], inside]).astype(np.int64)

    @property
    def sentences(self) -> np.ndarray:
        """int64: where sentences begin in the shard."""
        return np.flatnonzero(self.ids == _BEGIN_ID)

    def split(self, tokens: int) -> "tuple[PlannedShard, PlannedShard] | None":
        """The shard without about the last `tokens`, and these, which are held out;
        None where it is one sentence.

        It is split where a document begins, if one does within half of `tokens` of
        there, else where a sentence begins.
        """
        wanted = self.end - self.start - tokens
        documents = self.documents[1:]
        sentences = self.sentences[1:]
        if not len(sentences):
            return None
        near = documents[np.abs(documents - wanted) <= tokens // 2]
        if len(near):
            nearest = np.argmin(np.abs(near - wanted))
            cut = self.start + int(near[nearest])
        else:
            after = int(np.searchsorted(sentences, wanted))
            cut = self.start + int(sentences[min(after, len(sentences) - 1)])
        before = replace(self, end=cut)
        return before, replace(self, start=cut, held_out=True)


def piece_key(
    piece: TextPiece, leave_out: Overlap | None, tokenisers: Tokenisers
) -> str:
    """A hash of the piece: its files (path, size, time of change), their parts, and how
    it is read.
    """
    parts = []
    for part in piece.parts:
        stat = os.stat(part.path)
        file = [os.path.realpath(part.path), stat.st_size, stat.st_mtime_ns]
        tokeniser = tokenisers.get(part.path)
        wrapped = tokeniser and tokeniser.wrapped
        parts.append([*file, part.start, part.end, tokeniser is None, wrapped])
    left_out = leave_out and leave_out.fingerprint
    key = [piece.held_out, piece.shard_tokens, parts, left_out]
    return fingerprint([json.dumps(key).encode()])


def number_piece(
    piece: TextPiece, folder: Path, leave_out: Overlap | None, tokenisers: Tokenisers
) -> None:
    """Read a piece and write it to its folder; nothing happens where the folder is
    there.

    Args:
        piece: the piece.
        folder: called by the `piece_key`.
        leave_out: sentences that overlap with it are left out.
        tokenisers: by the paths of files of raw text.

    Raises:
        InputError: text that cannot be used.
    """
    if folder.exists():
        return
    # A new word gets the next number.
    local_ids: defaultdict[str, int] = defaultdict(count().__next__)
    assert (local_ids[BEGIN], local_ids[END]) == (_BEGIN_ID, _END_ID)
    with atomic_directory(folder) as partial:
        starts = [np.empty(0, dtype=np.int64)]
        tokens = 0
        left_out = 0
        with open(partial / "ids.bin", "wb") as file:
            for block in _numbered_blocks(piece, local_ids, leave_out, tokenisers):
                file.write(np.ascontiguousarray(block.ids).data)
                starts.append(block.documents + tokens)
                tokens += len(block.ids)
                left_out += block.left_out
        documents = np.concatenate(starts)
        np.save(partial / "documents.npy", documents)
        with open(partial / "lexicon.txt", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in local_ids)
        # A file without a byte cannot be mapped.
        ids = np.empty(0, dtype=ID_DTYPE)
        if tokens:
            ids = np.memmap(partial / "ids.bin", dtype=ID_DTYPE, mode="r")
        ends = list(shard_ends(ids, documents, piece.shard_tokens))
        write_json(partial / "piece.json", asdict(_PieceRecord(ends, left_out)))


@dataclass(frozen=True)
class _Block:
    """Some sentences that follow each other.

    ids: uint32 [n], of the piece.
    documents: int64, the positions in the block where documents begin.
    left_out: how many sentences are not in it.
    """

    ids: np.ndarray
    documents: np.ndarray
    left_out: int


def _numbered_blocks(
    piece: TextPiece,
    local_ids: defaultdict[str, int],
    leave_out: Overlap | None,
    tokenisers: Tokenisers,
) -> Iterator[_Block]:
    """Yield the text of a piece in blocks; `local_ids` get its new words."""
    # Of the types so far, as `leave_out` has them.
    hashes = np.empty(0, dtype=np.uint64)
    document_numbers = count()
    # The document of the sentence before; the first sentence begins one.
    document = -1
    for part in piece.parts:
        sentences = _sentences(part, tokenisers.get(part.path), document_numbers)
        for block in buffered(sentences, lambda each: len(each[1]), most=BLOCK_WORDS):
            known = len(local_ids)
            words = []
            for _, sentence in block:
                words += [BEGIN, *sentence, END]
            numbers = map(local_ids.__getitem__, words)
            ids = np.fromiter(numbers, dtype=ID_DTYPE, count=len(words))
            new_words = list(islice(local_ids, known, None))
            has_mark = np.count_nonzero(ids <= _END_ID) > 2 * len(block)
            if has_mark or any("\0" in word for word in new_words):
                _refuse_marks(part.path, block)
            lengths = np.array([len(sentence) + 2 for _, sentence in block])
            documents = np.array([number for number, _ in block])
            kept = np.ones(len(block), dtype=bool)
            if leave_out is not None:
                new = leave_out.hashes(islice(local_ids, len(hashes), None))
                hashes = np.concatenate([hashes, new])
                starts = np.cumsum(lengths) - lengths
                kept = ~leave_out.find(hashes[ids], starts)
            ids = ids[np.repeat(kept, lengths)]
            lengths = lengths[kept]
            starts = np.cumsum(lengths) - lengths
            begins = np.diff(documents[kept], prepend=document) > 0
            if len(starts):
                document = int(documents[kept][-1])
            yield _Block(ids, starts[begins], len(block) - len(starts))


def _sentences(
    part: TextRange, tokeniser: Tokeniser | None, document_numbers: Iterator[int]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the sentences of a part of a file that have any words, each with the number
    of its document.
    """
    documents = read_documents(part)
    if tokeniser is None:
        for document in documents:
            number = next(document_numbers)
            for words in document.sentences():
                if words:
                    yield number, words
        return
    number = next(document_numbers)
    for line in tokeniser.lines(lines_of(documents)):
        if line:
            yield number, line.split()
        else:
            number = next(document_numbers)


def _refuse_marks(path: AnyPath, block: Sequence[tuple[int, list[str]]]) -> None:
    """Raise an `InputError` for the word that a corpus cannot hold: a mark of sentence
    boundaries, or the zero byte, which ends a string in fastText.
    """
    for _, sentence in block:
        for word in sentence:
            if word in (BEGIN, END) or "\0" in word:
                line = " ".join(sentence)
                raise InputError(
                    f"{path} holds {word!r}, which marks an end, in the line "
                    f"{line!r:.200}"
                )


def shard_ends(
    ids: np.ndarray, documents: np.ndarray, shard_tokens: int
) -> Iterator[int]:
    """Where shards of 0.4 to 1.5 times `shard_tokens` end; text that is shorter is one
    shard.

    A shard ends where a document ends, if one does between 0.9 and 1.1 of its size,
    else where a sentence ends (long sentences are not cut).

    Args:
        ids: uint32 [n], of a piece.
        documents: int64, the positions where its documents begin.
        shard_tokens: the wanted size.
    """
    start = 0
    sentences = np.append(np.flatnonzero(ids == _BEGIN_ID), len(ids))
    while len(ids) - start >= 1.5 * shard_tokens:
        earliest = start + max(1, math.ceil(0.9 * shard_tokens))
        latest = start + math.floor(1.1 * shard_tokens)
        near = int(np.searchsorted(documents, earliest))
        if near < len(documents) and documents[near] <= latest:
            start = int(documents[near])
        else:
            start = int(sentences[np.searchsorted(sentences, start + shard_tokens)])
        yield start
    if start < len(ids):
        yield len(ids)
