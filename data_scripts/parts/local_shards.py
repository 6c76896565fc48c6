"""Local shards: the token shards of a piece of text, from before the lexicon of the whole corpus is known.

A piece numbers its word types in the order in which they first occur (one look-up a word), and is kept in a folder of
its own:

NNNNN.ids             little-endian uint32 ids of this piece, `<s> … </s>` around every sentence
NNNNN.documents.npy   int64, position of the first `<s>` of every document of the shard
NNNNN.counts.npy      int64, occurrences in the shard of the piece's types
lexicon.txt           the piece's types; id = line
piece.json            written last: the shards
"""

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import numpy as np

from data_scripts.parts.text_pieces import Piece, Segment, line_number, read_blocks
from elmoc.corpus import BEGIN, END, ID_DTYPE
from elmoc.errors import InputError
from elmoc.files.arrays import load_array
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_json, write_json

_LAYOUT = 1
_BEGIN_ID, _END_ID = 0, 1


@dataclass(frozen=True)
class LocalShard:
    """A shard of a piece; `tokens` counts sentence boundaries."""

    tokens: int
    sentences: int
    documents: int


def piece_key(piece: Piece, shard_tokens: int) -> str:
    """A hash of the piece: path, size and time of change of its files, its byte ranges, and the shard size."""
    files = [(str(Path(segment.path).resolve()), os.stat(segment.path)) for segment in piece.segments]
    described = [
        (path, stat.st_size, stat.st_mtime_ns, segment.start, segment.end)
        for (path, stat), segment in zip(files, piece.segments, strict=True)
    ]
    return fingerprint(json.dumps([_LAYOUT, piece.held_out, shard_tokens, described]).encode())


def finished_piece(folder: Path) -> list[LocalShard] | None:
    """The shards of the piece in `folder`, or None unless it is there as a whole."""
    if not (folder / "piece.json").exists():
        return None
    shards = [LocalShard(**shard) for shard in read_json(folder / "piece.json", advice="remove its folder")]
    for number, shard in enumerate(shards):
        ids = folder / f"{number:05}.ids"
        if not ids.exists() or ids.stat().st_size != shard.tokens * ID_DTYPE.itemsize:
            return None
    return shards


def write_piece(task: tuple[Piece, Path], shard_tokens: int) -> list[LocalShard]:
    """Read a piece and write its shards of about `shard_tokens` into its folder (reused when it is there already).

    Raises `InputError` naming file and line for anything in the text that cannot be used.
    """
    piece, folder = task
    finished = finished_piece(folder)
    if finished is not None:
        return finished
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    local_ids: defaultdict[str, int] = defaultdict(count().__next__)
    assert (local_ids[BEGIN], local_ids[END]) == (_BEGIN_ID, _END_ID)
    shards: list[LocalShard] = []
    for ids, documents in _cut_shards(_number_words(piece, local_ids), shard_tokens):
        stem = f"{len(shards):05}"
        ids.tofile(folder / f"{stem}.ids")
        np.save(folder / f"{stem}.documents.npy", documents)
        counts = np.bincount(ids, minlength=len(local_ids))
        np.save(folder / f"{stem}.counts.npy", counts)
        shards.append(LocalShard(len(ids), int(counts[_BEGIN_ID]), len(documents)))
    with open(folder / "lexicon.txt", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in local_ids)
    write_json(folder / "piece.json", [asdict(shard) for shard in shards])
    return shards


def _number_words(piece: Piece, local_ids: defaultdict[str, int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each block its ids (uint32 [n], blank lines taken out) and the positions where a document starts."""
    for segment in piece.segments:
        new_document = True  # the next sentence starts one: here at the start of the file or of the piece
        for first_line, text in read_blocks(segment):
            if BEGIN in text or END in text:
                _refuse_boundaries(segment, first_line, text)
            words = f"{BEGIN} {text}".replace("\n", f" {END} {BEGIN} ").split()
            words.pop()  # the begin of a sentence after the last line
            ids = np.fromiter(map(local_ids.__getitem__, words), dtype=ID_DTYPE, count=len(words))
            starts = np.flatnonzero(ids == _BEGIN_ID)
            blank = ids[starts + 1] == _END_ID
            begins_document = ~blank & np.concatenate([[new_document], blank[:-1]])
            new_document = bool(blank[-1])
            removed_before = 2 * (np.cumsum(blank) - blank)
            documents = (starts - removed_before)[begins_document]
            if blank.any():
                kept = np.ones(len(ids), dtype=bool)
                kept[starts[blank]] = kept[starts[blank] + 1] = False
                ids = ids[kept]
            yield ids, documents


def _refuse_boundaries(segment: Segment, first_line: int, text: str) -> None:
    for number, line in enumerate(text.split("\n"), first_line):
        for word in line.split():
            if word in (BEGIN, END):
                raise InputError(
                    f"{segment.path}, line {line_number(segment, number)}: the text holds {word}, which is the mark of "
                    "a sentence boundary here: take it out of the text"
                )


def _cut_shards(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]], shard_tokens: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield shards (ids, document positions) of 0.5 to 1.5 times `shard_tokens`.

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
            cut = _cut_position(ids[done:], documents[documents >= done] - done, shard_tokens)
            if cut >= len(ids) - done:
                break
            yield _shard(ids, documents, done, done + cut)
            done += cut
        ids, documents = ids[done:], documents[documents >= done] - done
    ids = np.concatenate([ids, *parts])
    if len(ids):
        yield _shard(ids, documents, 0, len(ids))


def _cut_position(ids: np.ndarray, documents: np.ndarray, shard_tokens: int) -> int:
    near = documents[(documents >= 0.9 * shard_tokens) & (documents <= 1.1 * shard_tokens) & (documents > 0)]
    if len(near):
        return int(near[0])
    reach = max(1, shard_tokens)
    while reach < len(ids):  # a sentence starts somewhere after the wanted size
        starts = np.flatnonzero(ids[reach : reach + 10_000] == _BEGIN_ID)
        if len(starts):
            return reach + int(starts[0])
        reach += 10_000
    return len(ids)


def _shard(ids: np.ndarray, documents: np.ndarray, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    inside = documents[(documents > start) & (documents < end)] - start
    return ids[start:end], np.concatenate([[0], inside]).astype(np.int64)


def local_lexicon(folder: Path) -> list[str]:
    """The word types of a finished piece; id = position."""
    return (folder / "lexicon.txt").read_text(encoding="utf-8").split("\n")[:-1]


def local_counts(folder: Path, shard: int) -> np.ndarray:
    """int64 [types seen up to the end of the shard]: occurrences in one shard of a finished piece."""
    return load_array(folder / f"{shard:05}.counts.npy", shape=(None,), dtype=np.int64)
