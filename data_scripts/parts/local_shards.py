"""Local shards: the token shards of a piece of text, from before the lexicon of the whole corpus is known.

A piece numbers its word types in the order in which they first occur (one look-up a word), and is kept in a folder of
its own:

NNNNN.ids             little-endian uint32 ids of this piece, `<s> … </s>` around every sentence
NNNNN.documents.npy   int64, position of the first `<s>` of every document of the shard
NNNNN.counts.npy      uint32 [2, n], the types of the shard by their ids in the piece, and how often each occurs in it
lexicon.txt           the piece's types; id = line
left_out.npy          int64 [1], sentences that were left out, which were to be
piece.json            the shards, and the checksums of the files

The folder appears when all of it is written.
"""

import json
import math
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np

from data_scripts.parts.text_pieces import Piece, Segment, line_number, read_blocks
from elmoc.corpus import BEGIN, END, ID_DTYPE
from elmoc.errors import InputError
from elmoc.files.arrays import load_array
from elmoc.files.checksums import FileChecksum, fingerprint
from elmoc.files.records import read_record, write_record
from elmoc.files.writing import atomic_directory
from elmoc.settings import setting
from elmoc.text.overlap import Overlap

FORMAT = "elmoc-piece"
VERSION = 1
_LAYOUT = 4
_BEGIN_ID, _END_ID = 0, 1


@dataclass(frozen=True)
class LocalShard:
    """A shard of a piece; `tokens` counts sentence boundaries."""

    tokens: int = setting(least=1)
    sentences: int = setting(least=1)
    documents: int = setting(least=1)


@dataclass(frozen=True)
class PieceRecord:
    """What `piece.json` holds: its shards, and the checksums of the other files."""

    shards: list[LocalShard]
    files: dict[str, FileChecksum]


def piece_key(piece: Piece, leave_out: Overlap | None = None) -> str:
    """A hash of the piece: its files (path, size, time of change), their byte ranges, and how it is read."""
    files = [(os.path.realpath(segment.path), os.stat(segment.path)) for segment in piece.segments]
    described = [
        (path, stat.st_size, stat.st_mtime_ns, segment.start, segment.end)
        for (path, stat), segment in zip(files, piece.segments, strict=True)
    ]
    left_out = [] if leave_out is None else [leave_out.fingerprint]
    return fingerprint(json.dumps([_LAYOUT, piece.held_out, piece.shard_tokens, described, *left_out]).encode())


def finished_piece(folder: Path) -> list[LocalShard] | None:
    """The shards of the piece in `folder`, or None unless it is there as it was written."""
    advice = "it is made again"
    try:
        piece = read_record(folder / "piece.json", PieceRecord, format=FORMAT, version=VERSION, advice=advice)
        for name, checksum in piece.files.items():
            checksum.check_whole(folder / name, advice=advice)
        whole = piece.files.keys() == set(_file_names(len(piece.shards)))
        whole = whole and piece.shards == [_shard_in(folder, number) for number in range(len(piece.shards))]
    except (InputError, OSError):
        return None
    return piece.shards if whole else None


def _shard_in(folder: Path, number: int) -> LocalShard:
    """What the files of a shard say of it."""
    tokens = (folder / f"{number:05}.ids").stat().st_size // ID_DTYPE.itemsize
    documents = local_documents(folder, number)
    types, counts = local_counts(folder, number)
    return LocalShard(tokens, int(counts[types == _BEGIN_ID].sum()), len(documents))


def _file_names(shards: int) -> list[str]:
    kinds = ("ids", "documents.npy", "counts.npy")
    return ["lexicon.txt", "left_out.npy", *(f"{number:05}.{kind}" for number in range(shards) for kind in kinds)]


def write_piece(task: tuple[Piece, Path], leave_out: Overlap | None = None) -> list[LocalShard]:
    """Read a piece and write its shards into its folder (reused when it is there already).

    Sentences that overlap with `leave_out` are left out. Raises `InputError` naming file and line for anything in the
    text that cannot be used, and for a file that changes meanwhile.
    """
    piece, folder = task
    shards = finished_piece(folder)
    if shards is None:
        with atomic_directory(folder, sync=False) as partial:
            shards = _write_shards(NumberedWords(piece, leave_out), partial, piece.shard_tokens)
            files = {name: FileChecksum.of(partial / name) for name in _file_names(len(shards))}
            write_record(partial / "piece.json", PieceRecord(shards, files), format=FORMAT, version=VERSION)
            if piece_key(piece, leave_out) != folder.name:
                names = ", ".join(segment.path for segment in piece.segments)
                raise InputError(f"{names} changed while it was read: run the command again when it is finished")
    return shards


def _write_shards(numbered: "NumberedWords", folder: Path, shard_tokens: int) -> list[LocalShard]:
    shards: list[LocalShard] = []
    for ids, documents in _cut_shards(iter(numbered), shard_tokens):
        stem = f"{len(shards):05}"
        (folder / f"{stem}.ids").write_bytes(np.ascontiguousarray(ids).data)
        np.save(folder / f"{stem}.documents.npy", documents)
        counts = np.bincount(ids)
        types = np.flatnonzero(counts)
        np.save(folder / f"{stem}.counts.npy", np.stack([types, counts[types]]).astype(ID_DTYPE))
        shards.append(LocalShard(len(ids), int(counts[_BEGIN_ID]), len(documents)))
    with open(folder / "lexicon.txt", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in numbered.local_ids)
    np.save(folder / "left_out.npy", np.array([numbered.left_out], dtype=np.int64))
    return shards


class NumberedWords:
    """The text of a piece as ids, block by block, and the ids that its words were given.

    left_out: sentences, so far, that overlap with `leave_out`.
    """

    def __init__(self, piece: Piece, leave_out: Overlap | None) -> None:
        self._piece = piece
        self._leave_out = leave_out
        self._hashes = np.empty(0, dtype=np.uint64)  # of the words, as `leave_out` has them
        self.local_ids: defaultdict[str, int] = defaultdict(count().__next__)
        self.left_out = 0
        assert (self.local_ids[BEGIN], self.local_ids[END]) == (_BEGIN_ID, _END_ID)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for each block its ids (uint32 [n], blank lines taken out) and the positions where documents start."""
        for segment in self._piece.segments:
            new_document = True  # the next sentence starts one: here at the start of the file or of the piece
            for first_line, text in read_blocks(segment):
                if BEGIN in text or END in text or "\0" in text:
                    _refuse_marks(segment, first_line, text)
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


def _refuse_marks(segment: Segment, first_line: int, text: str) -> None:
    for number, line in enumerate(text.split("\n"), first_line):
        marks = [word for word in line.split() if word in (BEGIN, END)]
        if marks or "\0" in line:
            mark = f"{marks[0]}, which is the mark of a sentence boundary here" if marks else "a NUL character"
            raise InputError(
                f"{segment.path}, line {line_number(segment, number)}: the text holds {mark}: take it out of the text"
            )


def _cut_shards(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]], shard_tokens: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield shards (ids, document positions) of 0.4 to 1.5 times `shard_tokens`.

    Long sentences, which are not cut, make some of other sizes; a piece that is smaller is one shard.
    A shard ends where a document ends, if one does between 0.9 and 1.1 of its size, else where a sentence ends. A
    document that is cut counts as one in each of its shards, so that the first document always stands at 0.
    """
    ids = np.empty(0, dtype=ID_DTYPE)
    documents = np.empty(0, dtype=np.int64)
    parts: list[np.ndarray] = []
    waiting = 0
    for block_ids, block_documents in blocks:
        documents = np.concatenate([documents, block_documents + len(ids) + waiting])
        parts.append(block_ids)
        waiting += len(block_ids)
        if len(ids) + waiting < 1.5 * shard_tokens:
            continue
        ids, parts, waiting = np.concatenate([ids, *parts]), [], 0
        done = 0
        while len(ids) - done >= 1.5 * shard_tokens:
            cut = _cut_position(ids, documents, done, shard_tokens)
            if cut >= len(ids):
                break
            yield _shard(ids, documents, done, cut)
            done = cut
        ids, documents = ids[done:], documents[np.searchsorted(documents, done) :] - done
    ids = np.concatenate([ids, *parts])
    if len(ids):
        yield _shard(ids, documents, 0, len(ids))


def _cut_position(ids: np.ndarray, documents: np.ndarray, start: int, shard_tokens: int) -> int:
    """Where the shard ends that starts at `start`; `documents` are in order."""
    near = int(np.searchsorted(documents, start + max(1, math.ceil(0.9 * shard_tokens))))
    if near < len(documents) and documents[near] <= start + math.floor(1.1 * shard_tokens):
        return int(documents[near])
    reach = start + shard_tokens
    while reach < len(ids):  # a sentence starts somewhere after the wanted size
        starts = np.flatnonzero(ids[reach : reach + 10_000] == _BEGIN_ID)
        if len(starts):
            return reach + int(starts[0])
        reach += 10_000
    return len(ids)


def _shard(ids: np.ndarray, documents: np.ndarray, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    return ids[start:end], documents_within(documents, slice(start, end))


def _part(ids: np.ndarray, documents: np.ndarray, part: slice) -> LocalShard:
    of_part = ids[part]
    return LocalShard(len(of_part), int(np.sum(of_part == _BEGIN_ID)), len(documents_within(documents, part)))


def local_lexicon(folder: Path) -> list[str]:
    """The word types of a finished piece; id = position."""
    return (folder / "lexicon.txt").read_text(encoding="utf-8").split("\n")[:-1]


def local_counts(folder: Path, shard: int) -> np.ndarray:
    """uint32 [2, n]: the types in one shard of a finished piece, and how often each occurs there."""
    return load_array(folder / f"{shard:05}.counts.npy", shape=(2, None), dtype=ID_DTYPE)


def local_ids(folder: Path, shard: int) -> np.ndarray:
    """uint32 [tokens], not loaded: the ids in the piece of a shard's tokens."""
    return np.memmap(folder / f"{shard:05}.ids", dtype=ID_DTYPE, mode="r")


def local_documents(folder: Path, shard: int) -> np.ndarray:
    """int64 [documents]: the positions in a shard at which its documents begin."""
    return load_array(folder / f"{shard:05}.documents.npy", shape=(None,), dtype=np.int64)


def documents_within(documents: np.ndarray, part: slice) -> np.ndarray:
    """int64: where documents begin within `part` of the tokens; what a part begins with is always one."""
    first, last = np.searchsorted(documents, [part.start + 1, part.stop])
    return np.concatenate([[0], documents[first:last] - part.start]).astype(np.int64)


def split_end(folder: Path, shard: int, tokens: int) -> tuple[LocalShard, LocalShard] | None:
    """Split about the last `tokens` off a shard: what is left of it, and the end, or None where it is one sentence.

    It is split where a document begins, if one does within half of `tokens` of there, else where a sentence begins.
    """
    ids, documents = local_ids(folder, shard), local_documents(folder, shard)
    wanted = len(ids) - tokens
    near = documents[np.abs(documents - wanted) <= tokens // 2]
    near = near[near > 0]
    if len(near):
        cut = int(near[np.argmin(np.abs(near - wanted))])
    else:
        starts = np.flatnonzero(ids == _BEGIN_ID)[1:]
        if not len(starts):
            return None
        cut = int(starts[min(int(np.searchsorted(starts, wanted)), len(starts) - 1)])
    return _part(ids, documents, slice(0, cut)), _part(ids, documents, slice(cut, len(ids)))


def left_out(folder: Path) -> int:
    """The sentences of a finished piece that were left out."""
    return int(load_array(folder / "left_out.npy", shape=(1,), dtype=np.int64)[0])
