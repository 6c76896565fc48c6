"""Pieces of text: how are files divided among workers, and how is a piece numbered?

A piece is what one worker reads: a part of a large plain file, one whole file of
another kind (which cannot be entered in the middle), or several small files. The
division depends on the files and the wanted size alone, never on the workers.

Before the lexicon of the whole corpus is known, a piece numbers its word types in the
order in which they first occur, and is kept in a folder of its own, which appears when
all of it is written:

    ids.bin         little-endian uint32 ids of this piece, `<s> … </s>` around every
                    sentence
    documents.bin   int64, the positions of the first `<s>` of every document
    lexicon.txt     the types; id = line
    counts.json     `left_out`, how many sentences were left out; `rows`, how many rows
                    were read, and `without_text`, how many of them have no text
"""

import json
import math
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, count, groupby, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from data_scripts.parts.tokenising import Tokeniser
from elmoc.batches import buffered
from elmoc.corpus import BEGIN, END, ID_DTYPE, tokens_before_sentence
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_directory
from elmoc.text.documents import (
    BYTES_PER_TOKEN,
    RowCount,
    TextRange,
    lines_of,
    read_documents,
    reader_of,
)
from elmoc.text.named_files import AnyPath
from elmoc.text.overlap import Overlap

# Words that are numbered at once. As strings of Python they fit into the cache of a
# core: 500,000 took 1.4 times the time.
BLOCK_WORDS = 20_000
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

    @property
    def text_bytes(self) -> int:
        """About how many bytes of text it has."""
        return sum(
            min(reader_of(part.path).text_bytes(part.path), part.end) - part.start
            for part in self.parts
        )


def cut_pieces(
    texts: Sequence[TextRange],
    shard_tokens: int,
    held_out: bool,
    source: str,
    wrapped: Collection[AnyPath],
) -> list[TextPiece]:
    """Divide files, all of one source, into pieces of about a shard each, in the order
    of the files; those with `wrapped` lines at ends of documents alone.

    Less than half a shard at the end is in one piece with the text before it: the last
    shard may be held out.
    """
    piece_bytes = shard_tokens * BYTES_PER_TOKEN
    pieces: list[list[TextRange]] = []
    # Bytes of the last piece; infinite where no small file may follow in it.
    last = math.inf
    for text in texts:
        reader = reader_of(text.path)
        parts = reader.divide(text, piece_bytes, between_lines=text.path not in wrapped)
        size = math.inf if len(parts) > 1 else reader.text_bytes(text.path)
        if last + size <= 1.25 * piece_bytes:
            pieces[-1] += parts
            last += size
        else:
            pieces += [[part] for part in parts]
            last = size
    if len(pieces) > 1 and 2 * last < piece_bytes:
        rest = pieces.pop()
        pieces[-1] += rest
    return [TextPiece(tuple(each), held_out, shard_tokens, source) for each in pieces]


class NumberedPiece:
    """A finished piece of text.

    text: the piece.
    folder: where its ids and its lexicon are.
    tokens: the number of its ids.
    counts: what `counts.json` holds.
    shards: planned, in their order.
    """

    def __init__(self, folder: Path, text: TextPiece) -> None:
        self.text = text
        self.folder = folder
        self.tokens = (folder / "ids.bin").stat().st_size // ID_DTYPE.itemsize
        self.counts: dict[str, int] = read_json(folder / "counts.json")
        # An empty file cannot be mapped.
        ends = (
            shard_ends(self.ids, self.documents, text.shard_tokens)
            if self.tokens
            else ()
        )
        self.shards = [
            PlannedShard(self, start, end, text.held_out)
            for start, end in pairwise([0, *ends])
        ]

    @property
    def ids(self) -> np.ndarray:
        """uint32 [tokens], memory-mapped: ids of the piece."""
        return np.memmap(self.folder / "ids.bin", ID_DTYPE, "r")

    @property
    def documents(self) -> np.ndarray:
        """int64, memory-mapped: where documents begin."""
        return np.memmap(self.folder / "documents.bin", np.int64, "r")

    @property
    def lexicon(self) -> list[str]:
        """Its word types; id = position."""
        return (self.folder / "lexicon.txt").read_text("utf-8").split("\n")[:-1]


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
        return self.piece.ids[self.start : self.end]

    @property
    def documents(self) -> np.ndarray:
        """int64: where documents begin in the shard; its first token always begins
        one.
        """
        documents = self.piece.documents
        first, last = np.searchsorted(documents, [self.start + 1, self.end])
        return np.append(0, documents[first:last] - self.start)

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
        place = sentences[np.searchsorted(sentences[:-1], wanted)]
        near = documents[np.abs(documents - wanted) <= tokens // 2]
        if len(near):
            place = near[np.argmin(np.abs(near - wanted))]
        cut = self.start + int(place)
        return replace(self, end=cut), replace(self, start=cut, held_out=True)


def _piece_key(
    piece: TextPiece, leave_out: Overlap | None, tokenisers: Tokenisers
) -> str:
    """A hash of the piece: its files (path, size, time of change), their parts, and how
    it is read.
    """
    overlap = leave_out and leave_out.fingerprint
    key: list[Any] = [piece.held_out, piece.shard_tokens, overlap]
    for part in piece.parts:
        stat = os.stat(part.path)
        key += [os.path.realpath(part.path), stat.st_size, stat.st_mtime_ns]
        tokeniser = tokenisers.get(part.path)
        how = tokeniser and [tokeniser.wrapped, tokeniser.keep]
        key += [part.start, part.end, part.field, how]
    return fingerprint([json.dumps(key).encode()])


def number_piece(
    piece: TextPiece, work: Path, leave_out: Overlap | None, tokenisers: Tokenisers
) -> Path:
    """Read a piece, and write it to a folder, which is returned; where the folder is
    there, nothing is read.

    Args:
        piece: the piece.
        work: the folder of all pieces.
        leave_out: sentences that overlap with it are left out.
        tokenisers: by the paths of files of raw text.

    Raises:
        InputError: text that cannot be used.
    """
    folder = work / _piece_key(piece, leave_out, tokenisers)
    if folder.exists():
        return folder
    # A new word gets the next number.
    local_ids = defaultdict(count(2).__next__, {BEGIN: _BEGIN_ID, END: _END_ID})
    with atomic_directory(folder) as partial:
        rows = RowCount()
        tokens = left_out = 0
        with (
            open(partial / "ids.bin", "wb") as ids_file,
            open(partial / "documents.bin", "wb") as documents_file,
        ):
            blocks = _numbered_blocks(piece, local_ids, leave_out, tokenisers, rows)
            for ids, begins, missing in blocks:
                ids_file.write(np.ascontiguousarray(ids).data)
                documents_file.write((begins + tokens).data)
                tokens += len(ids)
                left_out += missing
        with open(partial / "lexicon.txt", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in local_ids)
        write_json(partial / "counts.json", {"left_out": left_out, **asdict(rows)})
    return folder


def _numbered_blocks(
    piece: TextPiece,
    local_ids: defaultdict[str, int],
    leave_out: Overlap | None,
    tokenisers: Tokenisers,
    rows: RowCount,
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield the text of a piece in blocks of sentences; `local_ids` get its new words,
    and `rows` counts.

    A block is its ids, uint32 [n]; the positions in it where documents begin, int64;
    and how many sentences are left out of it.
    """
    # Of the types so far, as `leave_out` has them.
    hashes = np.empty(0) if leave_out is None else leave_out.hashes(local_ids)
    # The number of the next document, and that of the last sentence; the first sentence
    # begins one.
    next_document = 0
    document = -1
    for part in piece.parts:
        tokeniser = tokenisers.get(part.path)
        found = _sentences(part, tokeniser, rows)
        for sentences in buffered(found, len, most=BLOCK_WORDS):
            # Written out, since it is a tenth of the time of a corpus.
            words: list[str] = []
            for sentence in sentences:
                words.append(BEGIN)
                words += sentence
                words.append(END)
            known = len(local_ids)
            numbers = map(local_ids.__getitem__, words)
            ids = np.fromiter(numbers, dtype=ID_DTYPE, count=len(words))
            new_words = list(islice(reversed(local_ids), len(local_ids) - known))
            has_mark = np.count_nonzero(ids <= _END_ID) > 2 * len(sentences)
            if has_mark or any("\0" in word for word in new_words):
                line = " ".join(next(each for each in sentences if _has_mark(each)))
                raise InputError(
                    f"{part.path} holds {BEGIN}, {END} or a zero byte, which mark an "
                    f"end, in the line {line!r:.200}"
                )
            starts = np.flatnonzero(ids == _BEGIN_ID)
            ends_document = ids[starts + 1] == _END_ID
            kept = ~ends_document
            if leave_out is not None:
                hashes = np.append(hashes, leave_out.hashes(reversed(new_words)))
                kept &= ~leave_out.find(hashes[ids], starts)
            documents = next_document + np.cumsum(ends_document)
            next_document = int(documents[-1])
            begins = np.diff(documents[kept], prepend=document) > 0
            document = int(documents[kept].max(initial=document))
            ids = ids[np.repeat(kept, np.diff(starts, append=len(ids)))]
            starts = np.flatnonzero(ids == _BEGIN_ID)[begins]
            yield ids, starts, int(np.count_nonzero(~ends_document & ~kept))


def _sentences(
    part: TextRange, tokeniser: Tokeniser | None, rows: RowCount
) -> Iterator[list[str]]:
    """Yield the words of each sentence of a part of a file; no words where a document
    ends.
    """
    lines = lines_of(read_documents(part, count=rows))
    lines = tokeniser.lines(lines) if tokeniser else lines
    # Any number of blank lines is one end.
    for has_words, each in groupby(map(str.split, chain(lines, [""])), key=bool):
        yield from each if has_words else [[]]


def _has_mark(sentence: list[str]) -> bool:
    """Whether a sentence has a word that a corpus cannot hold: a mark of sentence
    boundaries, or the zero byte, which ends a string in fastText.
    """
    return "\0" in "".join(sentence) or not {BEGIN, END}.isdisjoint(sentence)


def shard_ends(
    ids: np.ndarray, documents: np.ndarray, shard_tokens: int
) -> Iterator[int]:
    """Where shards of 0.4 to 1.5 times `shard_tokens` end; text that is shorter is one
    shard.

    A shard ends where a document ends, if one does between 0.9 and 1.1 of its size,
    else where a sentence ends (long sentences are not cut).

    Args:
        ids: uint32, of a piece.
        documents: int64, the positions where its documents begin.
        shard_tokens: the wanted size.
    """
    start = 0
    end = len(ids)
    while end - start >= 1.5 * shard_tokens:
        earliest = start + max(1, math.ceil(0.9 * shard_tokens))
        latest = start + math.floor(1.1 * shard_tokens)
        near = int(np.searchsorted(documents, earliest))
        is_near = near < len(documents) and documents[near] <= latest
        wanted = start + shard_tokens
        start = (
            int(documents[near])
            if is_near
            else wanted + tokens_before_sentence(ids[wanted:], _BEGIN_ID)
        )
        yield start
    if start < end:
        yield end
