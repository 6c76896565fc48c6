"""Numbered pieces: what is kept of a piece of text before the lexicon of the whole corpus is known?

A piece numbers its word types in the order in which they first occur, and is kept in a folder of its own, which
appears when all of it is written:

ids.bin         little-endian uint32 ids of this piece, `<s> … </s>` around every sentence
documents.npy   int64, the positions of the first `<s>` of every document
lexicon.txt     the types; id = line
piece.json      where its shards end, and how many sentences were left out
"""

import json
import math
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import Path

import numpy as np

from data_scripts.parts.text_pieces import TextPiece, read_blocks
from elmoc.corpus import BEGIN, END, ID_DTYPE
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.writing import atomic_directory
from elmoc.text.overlap import Overlap

_BEGIN_ID, _END_ID = 0, 1
_LAYOUT = 5  # of the files of a piece: other layouts get folders of other names


class NumberedPiece:
    """A finished piece of `text`: `shard_ends` are where its shards end, `left_out` is a number of sentences."""

    def __init__(self, text: TextPiece, folder: Path) -> None:
        record = json.loads((folder / "piece.json").read_text())
        self.text, self.folder = text, folder
        self.shard_ends: list[int] = record["shard_ends"]
        self.left_out: int = record["left_out"]
        self.documents = np.load(folder / "documents.npy")  # int64

    @property
    def lexicon(self) -> list[str]:
        """The word types; id = position."""
        return (self.folder / "lexicon.txt").read_text(encoding="utf-8").split("\n")[:-1]

    @property
    def shards(self) -> list["TextPart"]:
        """The shards of the piece, in their order."""
        return [TextPart(self, *span) for span in zip([0, *self.shard_ends], self.shard_ends, strict=False)]

    @cached_property
    def ids(self) -> np.ndarray:
        """uint32 [tokens], memory-mapped."""
        return np.memmap(self.folder / "ids.bin", dtype=ID_DTYPE, mode="r")


@dataclass(frozen=True)
class TextPart:
    """The tokens [start, end) of a numbered piece."""

    numbered: NumberedPiece
    start: int
    end: int

    @property
    def text(self) -> TextPiece:
        """The piece of text that it is of."""
        return self.numbered.text

    @property
    def ids(self) -> np.ndarray:
        """uint32 [tokens], memory-mapped: ids of the piece."""
        return self.numbered.ids[self.start : self.end]

    @property
    def documents(self) -> np.ndarray:
        """int64: where documents begin in the part; what it begins with is always one."""
        first, last = np.searchsorted(self.numbered.documents, [self.start + 1, self.end])
        return np.concatenate([[0], self.numbered.documents[first:last] - self.start]).astype(np.int64)

    @property
    def sentences(self) -> int:
        """How many there are."""
        return int(np.count_nonzero(self.ids == _BEGIN_ID))

    def split(self, tokens: int) -> "tuple[TextPart, TextPart] | None":
        """What is left without about the last `tokens`, and these; None where the part is one sentence.

        It is split where a document begins, if one does within half of `tokens` of there, else where a sentence begins.
        """
        wanted, documents = self.end - self.start - tokens, self.documents[1:]
        near = documents[np.abs(documents - wanted) <= tokens // 2]
        if len(near):
            cut = int(near[np.argmin(np.abs(near - wanted))])
        else:
            starts = np.flatnonzero(self.ids == _BEGIN_ID)[1:]
            if not len(starts):
                return None
            cut = int(starts[min(int(np.searchsorted(starts, wanted)), len(starts) - 1)])
        cut += self.start
        return TextPart(self.numbered, self.start, cut), TextPart(self.numbered, cut, self.end)


def piece_key(piece: TextPiece, leave_out: Overlap | None) -> str:
    """A hash of the piece: its files (path, size, time of change), their byte ranges, and how it is read."""
    described = []
    for segment in piece.segments:
        stat = os.stat(segment.path)
        described.append((os.path.realpath(segment.path), stat.st_size, stat.st_mtime_ns, segment.start, segment.end))
    left_out = [] if leave_out is None else [leave_out.fingerprint]
    return fingerprint(json.dumps([_LAYOUT, piece.held_out, piece.shard_tokens, described, *left_out]).encode())


def number_piece(piece: TextPiece, folder: Path, leave_out: Overlap | None) -> None:
    """Read a piece and write it to its folder, which is called by its `piece_key`; nothing happens when it is there.

    Sentences that overlap with `leave_out` are left out. Raises `InputError` for text that cannot be used, and for a
    file that changes meanwhile.
    """
    if folder.exists():
        return
    with atomic_directory(folder) as partial:
        words = NumberedWords(leave_out)
        starts, tokens = [np.empty(0, dtype=np.int64)], 0
        with open(partial / "ids.bin", "wb") as file:
            for ids, starts_of_block in words.read(piece):
                file.write(np.ascontiguousarray(ids).data)
                starts.append(starts_of_block + tokens)
                tokens += len(ids)
        documents = np.concatenate(starts)
        np.save(partial / "documents.npy", documents)
        with open(partial / "lexicon.txt", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in words.local_ids)
        ids = np.memmap(partial / "ids.bin", dtype=ID_DTYPE, mode="r") if tokens else np.empty(0, dtype=ID_DTYPE)
        record = {"shard_ends": list(shard_ends(ids, documents, piece.shard_tokens)), "left_out": words.left_out}
        (partial / "piece.json").write_text(json.dumps(record))
        if piece_key(piece, leave_out) != folder.name:
            raise InputError(f"{piece.segments[0].path} changed while it was read: run the command again")


class NumberedWords:
    """The ids that the words of a text are given, in the order of first occurrence.

    left_out: sentences, so far, that overlap with `leave_out`.
    """

    def __init__(self, leave_out: Overlap | None) -> None:
        self._leave_out = leave_out
        self._hashes = np.empty(0, dtype=np.uint64)  # of the words, as `leave_out` has them
        self.local_ids: defaultdict[str, int] = defaultdict(count().__next__)
        self.left_out = 0
        assert (self.local_ids[BEGIN], self.local_ids[END]) == (_BEGIN_ID, _END_ID)

    def read(self, piece: TextPiece) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for each block its ids (uint32 [n], blank lines taken out) and the positions where documents start."""
        for segment in piece.segments:
            new_document = True  # the next sentence starts one: here at the start of the file or of the piece
            for text in read_blocks(segment):
                words = f"{BEGIN} {text}".replace("\n", f" {END} {BEGIN} ").split()
                words.pop()  # the begin of a sentence after the last line
                ids = np.fromiter(map(self.local_ids.__getitem__, words), dtype=ID_DTYPE, count=len(words))
                starts = np.flatnonzero(ids == _BEGIN_ID)
                blank = ids[starts + 1] == _END_ID
                kept = ~blank & ~self._overlapping(ids, starts)
                document = new_document + np.cumsum(blank)  # in the block; 0 is the one from before it
                documents_kept = document[kept]
                begins = np.diff(documents_kept, prepend=0) > 0
                new_document = bool(document[-1] > (documents_kept[-1] if len(documents_kept) else 0))
                if not kept.all():
                    lengths = np.diff(starts, append=len(ids))
                    ids = ids[np.repeat(kept, lengths)]
                    starts = np.cumsum(lengths[kept]) - lengths[kept]
                yield ids, starts[begins]

    def _overlapping(self, ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """bool [S]: the sentences that are to be left out."""
        if self._leave_out is None:
            return np.zeros(len(starts), dtype=bool)
        new = self._leave_out.hashes(islice(self.local_ids, len(self._hashes), None))
        self._hashes = np.concatenate([self._hashes, new])
        found = self._leave_out.find(self._hashes[ids], starts)
        self.left_out += int(found.sum())
        return found


def shard_ends(ids: np.ndarray, documents: np.ndarray, shard_tokens: int) -> Iterator[int]:
    """Where shards of 0.4 to 1.5 times `shard_tokens` end; text that is shorter is one shard.

    A shard ends where a document ends, if one does between 0.9 and 1.1 of its size, else where a sentence ends (long
    sentences are not cut).
    """
    start = 0
    while len(ids) - start >= 1.5 * shard_tokens:
        near = int(np.searchsorted(documents, start + max(1, math.ceil(0.9 * shard_tokens))))
        if near < len(documents) and documents[near] <= start + math.floor(1.1 * shard_tokens):
            start = int(documents[near])
        else:
            start += shard_tokens
            while start < len(ids) and ids[start] != _BEGIN_ID:
                start += 1
        yield start
    if start < len(ids):
        yield len(ids)
