"""Pieces of text: how are files cut into pieces of bounded size, and how is a piece
read and numbered?

A piece is what one worker reads: a byte range of a large plain file, one whole
compressed file (which cannot be entered in the middle), or several small files. The cut
depends on the files and the wanted size alone, never on the workers.

Before the lexicon of the whole corpus is known, a piece numbers its word types in the
order in which they first occur, and is kept in a folder of its own, which appears when
all of it is written:

ids.bin         little-endian uint32 ids of this piece, `<s> … </s>` around every
sentence documents.npy   int64, the positions of the first `<s>` of every document
lexicon.txt     the types; id = line piece.json      where its shards end, and how many
sentences were left out
"""

import json
import math
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO

import numpy as np

from elmoc.corpus import BEGIN, END, ID_DTYPE
from elmoc.errors import InputError, reading
from elmoc.files.checksums import fingerprint
from elmoc.files.compression import compression, open_binary
from elmoc.files.limits import MAX_LINE_BYTES
from elmoc.files.writing import atomic_directory
from elmoc.text.documents import BYTES_PER_TOKEN, estimate_text_bytes
from elmoc.text.overlap import Overlap

BLOCK_BYTES = 4 << 20
# in each piece
_BEGIN_ID = 0
_END_ID = 1
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
# Words that a corpus cannot hold: the marks of sentence boundaries, and the zero byte,
# which ends a string in fastText.
_REFUSED = re.compile(rf"(?<!\S)(?:{BEGIN}|{END})(?!\S)|\0")


@dataclass(frozen=True)
class Segment:
    """The bytes [start, end) of a file, as far as it goes. Starts and ends at line
    boundaries.
    """

    path: str
    start: int = 0
    end: int = sys.maxsize


@dataclass(frozen=True)
class TextPiece:
    """What one worker reads: segments in order, all of one source and one split.

    shard_tokens: about how many tokens a shard of it has.
    """

    segments: tuple[Segment, ...]
    held_out: bool
    shard_tokens: int
    source: str = ""


def cut_pieces(
    files: Sequence[Path], shard_tokens: int, held_out: bool, source: str = ""
) -> list[TextPiece]:
    """Cut `files`, all of one source, into pieces of about a shard each, in the order
    of the files.

    A rest of less than half a shard is in one piece with what comes before it: the last
    shard may be held out.
    """
    piece_bytes = shard_tokens * BYTES_PER_TOKEN
    pieces: list[list[Segment]] = []
    last = (
        math.inf
    )  # bytes of the last piece; infinite where no small file may follow in it
    for file in files:
        size = estimate_text_bytes(file)
        if size > 1.5 * piece_bytes and compression(file) is None:
            cuts = _cuts(file, size, piece_bytes)
            pieces += [
                [Segment(str(file), *span)]
                for span in zip(cuts, cuts[1:], strict=False)
            ]
            last = math.inf
        elif last + size <= 1.25 * piece_bytes:
            pieces[-1].append(Segment(str(file)))
            last += size
        else:
            pieces.append([Segment(str(file))])
            last = size
    if len(pieces) > 1 and 2 * last < piece_bytes:
        pieces[-2:] = [pieces[-2] + pieces[-1]]
    return [
        TextPiece(tuple(segments), held_out, shard_tokens, source)
        for segments in pieces
    ]


def _cuts(path: Path, size: int, piece_bytes: int) -> list[int]:
    """Where a plain file is cut, 0 and its size included: into equal parts, each moved
    to where the next document starts, if one does soon, else to the next line.
    """
    parts = max(2, round(size / piece_bytes))
    cuts = {0, size}
    with open(path, "rb") as file:
        for nominal in (size * part // parts for part in range(1, parts)):
            file.seek(nominal)
            blank = _BLANK_LINE.search(file.read(min(1 << 20, piece_bytes // 4 + 1)))
            file.seek(nominal)
            cuts.add(
                nominal + (blank.end() if blank else len(_rest_of_line(file, path)))
            )
    return sorted(cuts)


def read_blocks(segment: Segment, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    r"""Yield the text of a segment in blocks of whole lines; only "\n" ends a line, and
    every text ends with one.

    Raises `InputError` naming the file for invalid UTF-8, broken gzip data, a line of
    more than `MAX_LINE_BYTES`, and, with its line, for a NUL character and the words
    `<s>` and `</s>`.
    """
    with reading(segment.path), open_binary(segment.path) as file:
        file.seek(segment.start)
        while block := file.read(min(block_bytes, segment.end - file.tell())):
            at_start = file.tell() == len(block)
            if not block.endswith(b"\n"):
                block += _rest_of_line(file, segment.path)
            text = block.decode("utf-8-sig" if at_start else "utf-8")
            # marks are looked for first: that is a hundred times faster than the
            # pattern
            if any(mark in text for mark in (BEGIN, END, "\0")) and (
                found := _REFUSED.search(text)
            ):
                line = text[text.rfind("\n", 0, found.start()) + 1 :].split("\n", 1)[0]
                raise InputError(
                    f"{segment.path} holds {found[0]!r}, which marks an end, in the line {line!r:.200}"
                )
            yield text if text.endswith("\n") else f"{text}\n"


def _rest_of_line(file: IO[bytes], path: Path | str) -> bytes:
    line = file.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"{path}: a line is longer than {MAX_LINE_BYTES >> 20} MiB")
    return line


class NumberedPiece:
    """A finished piece of `text`: its `shards` in their order, and the number of
    sentences that were `left_out`.
    """

    def __init__(self, text: TextPiece, folder: Path) -> None:
        record = json.loads((folder / "piece.json").read_text())
        ends: list[int] = record["shard_ends"]
        self.text = text
        self.folder = folder
        self.left_out: int = record["left_out"]
        self.documents = np.load(folder / "documents.npy")  # int64
        self.shards = [
            TextPart(self, *span) for span in zip([0, *ends], ends, strict=False)
        ]


@dataclass(frozen=True)
class TextPart:
    """The tokens [start, end) of a numbered piece."""

    piece: NumberedPiece
    start: int
    end: int

    @property
    def ids(self) -> np.ndarray:
        """uint32 [tokens], memory-mapped: ids of the piece."""
        return np.memmap(self.piece.folder / "ids.bin", dtype=ID_DTYPE, mode="r")[
            self.start : self.end
        ]

    @property
    def documents(self) -> np.ndarray:
        """int64: where documents begin in the part; what it begins with is always one."""
        first, last = np.searchsorted(self.piece.documents, [self.start + 1, self.end])
        return np.concatenate(
            [[0], self.piece.documents[first:last] - self.start]
        ).astype(np.int64)

    @property
    def sentences(self) -> np.ndarray:
        """int64: where sentences begin in the part."""
        return np.flatnonzero(self.ids == _BEGIN_ID)

    def split(self, tokens: int) -> "tuple[TextPart, TextPart] | None":
        """What is left without about the last `tokens`, and these; None where the part
        is one sentence.

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
            cut = int(near[np.argmin(np.abs(near - wanted))])
        else:
            cut = int(
                sentences[
                    min(int(np.searchsorted(sentences, wanted)), len(sentences) - 1)
                ]
            )
        cut += self.start
        return TextPart(self.piece, self.start, cut), TextPart(
            self.piece, cut, self.end
        )


def piece_key(piece: TextPiece, leave_out: Overlap | None) -> str:
    """A hash of the piece: its files (path, size, time of change), their byte ranges,
    and how it is read.
    """
    described = []
    for segment in piece.segments:
        stat = os.stat(segment.path)
        described.append(
            (
                os.path.realpath(segment.path),
                stat.st_size,
                stat.st_mtime_ns,
                segment.start,
                segment.end,
            )
        )
    left_out = leave_out and leave_out.fingerprint
    return fingerprint(
        [json.dumps([piece.held_out, piece.shard_tokens, described, left_out]).encode()]
    )


def number_piece(piece: TextPiece, folder: Path, leave_out: Overlap | None) -> None:
    """Read a piece and write it to its folder, which is called by its `piece_key`;
    nothing happens when it is there.

    Sentences that overlap with `leave_out` are left out. Raises `InputError` for text
    that cannot be used.
    """
    if folder.exists():
        return
    local_ids: defaultdict[str, int] = defaultdict(count().__next__)
    assert (local_ids[BEGIN], local_ids[END]) == (_BEGIN_ID, _END_ID)
    with atomic_directory(folder) as partial:
        starts = [np.empty(0, dtype=np.int64)]
        tokens = 0
        left_out = 0
        with open(partial / "ids.bin", "wb") as file:
            for ids, starts_of_block, left_out_of_block in _numbered_blocks(
                piece, local_ids, leave_out
            ):
                file.write(np.ascontiguousarray(ids).data)
                starts.append(starts_of_block + tokens)
                tokens += len(ids)
                left_out += left_out_of_block
        documents = np.concatenate(starts)
        np.save(partial / "documents.npy", documents)
        with open(partial / "lexicon.txt", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word}\n" for word in local_ids)
        ids = (
            np.memmap(partial / "ids.bin", dtype=ID_DTYPE, mode="r")
            if tokens
            else np.empty(0, dtype=ID_DTYPE)
        )
        record = {
            "shard_ends": list(shard_ends(ids, documents, piece.shard_tokens)),
            "left_out": left_out,
        }
        (partial / "piece.json").write_text(json.dumps(record))


def _numbered_blocks(
    piece: TextPiece, local_ids: defaultdict[str, int], leave_out: Overlap | None
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield for each block the ids of its sentences (uint32 [n]; blank lines and what
    is left out taken out), the positions where documents start, and how many sentences
    were left out. New words get the next of `local_ids`.
    """
    hashes = np.empty(0, dtype=np.uint64)  # of the words, as `leave_out` has them
    for segment in piece.segments:
        # the next sentence starts one: here at the start of the file or of the piece
        new_document = True
        for text in read_blocks(segment):
            words = f"{BEGIN} {text}".replace("\n", f" {END} {BEGIN} ").split()
            words.pop()  # the begin of a sentence after the last line
            ids = np.fromiter(
                map(local_ids.__getitem__, words), dtype=ID_DTYPE, count=len(words)
            )
            starts = np.flatnonzero(ids == _BEGIN_ID)
            blank = ids[starts + 1] == _END_ID
            kept = ~blank
            if leave_out is not None:
                hashes = np.concatenate(
                    [hashes, leave_out.hashes(islice(local_ids, len(hashes), None))]
                )
                kept &= ~leave_out.find(hashes[ids], starts)
            document = new_document + np.cumsum(
                blank
            )  # in the block; 0 is the one from before it
            documents_kept = document[kept]
            begins = np.diff(documents_kept, prepend=0) > 0
            new_document = bool(
                document[-1] > (documents_kept[-1] if len(documents_kept) else 0)
            )
            lengths = np.diff(starts, append=len(ids))
            if not kept.all():
                ids = ids[np.repeat(kept, lengths)]
                starts = np.cumsum(lengths[kept]) - lengths[kept]
            yield ids, starts[begins], int((~blank).sum() - kept.sum())


def shard_ends(
    ids: np.ndarray, documents: np.ndarray, shard_tokens: int
) -> Iterator[int]:
    """Where shards of 0.4 to 1.5 times `shard_tokens` end; text that is shorter is one
    shard.

    A shard ends where a document ends, if one does between 0.9 and 1.1 of its size,
    else where a sentence ends (long sentences are not cut).
    """
    start = 0
    sentences = np.append(np.flatnonzero(ids == _BEGIN_ID), len(ids))
    while len(ids) - start >= 1.5 * shard_tokens:
        near = int(
            np.searchsorted(documents, start + max(1, math.ceil(0.9 * shard_tokens)))
        )
        if near < len(documents) and documents[near] <= start + math.floor(
            1.1 * shard_tokens
        ):
            start = int(documents[near])
        else:
            start = int(sentences[np.searchsorted(sentences, start + shard_tokens)])
        yield start
    if start < len(ids):
        yield len(ids)
