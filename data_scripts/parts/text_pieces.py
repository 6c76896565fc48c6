"""Pieces of text: how are files cut into pieces of bounded size, and how is a piece read?

A piece is what one worker reads: a byte range of a large plain file, one whole `.gz` file (gzip cannot be entered in
the middle), or several small files. The cut depends on the files and the wanted size alone, never on the workers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError, reading
from elmoc.files.text import MAX_LINE_BYTES, open_binary, read_lines
from elmoc.text.named_files import BYTES_PER_TOKEN, estimate_text_bytes

BLOCK_BYTES = 4 << 20
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
# Words that a corpus cannot hold: the marks of sentence boundaries, and what ends a string in fastText.
_REFUSED = re.compile(rf"(?<!\S)(?:{BEGIN}|{END})(?!\S)|\0")


@dataclass(frozen=True)
class Segment:
    """The bytes [start, end) of a file; `end` None is its end. Starts and ends at line boundaries."""

    path: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class TextPiece:
    """What one worker reads: segments in order, all of one source and one split.

    text_bytes: estimated size of the uncompressed text.
    shard_tokens: about how many tokens a shard of it has.
    """

    segments: tuple[Segment, ...]
    held_out: bool
    text_bytes: int
    shard_tokens: int
    source: str = ""


def cut_pieces(files: Sequence[Path], shard_tokens: int, held_out: bool, source: str = "") -> list[TextPiece]:
    """Cut `files`, all of one source, into pieces of about a shard each, in the order of the files.

    A rest of less than half a shard is in one piece with what comes before it: the last shard may be held out.
    """
    piece_bytes = shard_tokens * BYTES_PER_TOKEN
    pieces: list[tuple[list[Segment], int]] = []  # each with its bytes
    takes_more = False  # whether small files may follow in the last piece
    for file in files:
        size = estimate_text_bytes(file)
        if file.suffix != ".gz" and size > 1.5 * piece_bytes:
            cuts = _cuts(file, size, piece_bytes)
            pieces += [([Segment(str(file), *span)], span[1] - span[0]) for span in zip(cuts, cuts[1:], strict=False)]
            takes_more = False
        elif takes_more and pieces[-1][1] + size <= 1.25 * piece_bytes:
            pieces[-1] = [*pieces[-1][0], Segment(str(file))], pieces[-1][1] + size
        else:
            pieces.append(([Segment(str(file))], size))
            takes_more = True
    if takes_more and len(pieces) > 1 and 2 * pieces[-1][1] < piece_bytes:
        rest, size = pieces.pop()
        pieces[-1] = [*pieces[-1][0], *rest], pieces[-1][1] + size
    return [TextPiece(tuple(segments), held_out, size, shard_tokens, source) for segments, size in pieces]


def _cuts(path: Path, size: int, piece_bytes: int) -> list[int]:
    """Where a plain file is cut, 0 and its size included: into equal parts, each moved to where the next document
    starts, if one does soon, else to the next line."""
    parts = max(2, round(size / piece_bytes))
    cuts = {0, size}
    with open(path, "rb") as file:
        for nominal in (size * part // parts for part in range(1, parts)):
            file.seek(nominal)
            blank = _BLANK_LINE.search(file.read(min(1 << 20, piece_bytes // 4 + 1)))
            file.seek(nominal)
            cuts.add(nominal + (blank.end() if blank else len(_rest_of_line(file, path))))
    return sorted(cuts)


def read_blocks(segment: Segment, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    r"""Yield the text of a segment in blocks of whole lines; only "\n" ends a line, and every text ends with one.

    Raises `InputError` naming file and line for invalid UTF-8, a NUL character, and the words `<s>` and `</s>`; naming
    the file for broken gzip data and a line of more than `MAX_LINE_BYTES`.
    """
    with reading(segment.path), open_binary(segment.path) as file:
        file.seek(segment.start)
        while segment.end is None or file.tell() < segment.end:
            position = file.tell()
            block = file.read(block_bytes if segment.end is None else min(block_bytes, segment.end - position))
            if not block:
                return
            if not block.endswith(b"\n"):
                block += _rest_of_line(file, segment.path)
            try:
                text = block.decode("utf-8-sig" if position == 0 else "utf-8")
            except UnicodeDecodeError:
                _refuse_line(segment.path)
                raise
            # marks are looked for first: that is a hundred times faster than the pattern
            if any(mark in text for mark in (BEGIN, END, "\0")) and _REFUSED.search(text):
                _refuse_line(segment.path)
            yield text if text.endswith("\n") else f"{text}\n"


def _rest_of_line(file: IO[bytes], path: Path | str) -> bytes:
    line = file.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"{path}: a line is longer than {MAX_LINE_BYTES >> 20} MiB")
    return line


def _refuse_line(path: str) -> None:
    """Raise the `InputError` that names the first line of a file that a corpus cannot hold."""
    for number, line in enumerate(read_lines(path), 1):
        if found := _REFUSED.search(line):
            raise InputError(f"{path}, line {number}: the text holds {found[0]!r}, which marks an end: take it out")
