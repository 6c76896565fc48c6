"""Pieces of text: how files are cut into pieces of bounded size, and read block by block.

A piece is what one worker reads: a byte range of a large plain file, one whole `.gz` file (gzip cannot be entered in
the middle), or several small files, which the last piece may have behind a part of a large one. The cut depends on the
files and the wanted size alone, never on the workers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmoc.files.text import BROKEN_GZIP, MAX_LINE_BYTES, broken_gzip, invalid_utf8, line_too_long, open_binary
from elmoc.text.named_files import BYTES_PER_TOKEN, estimate_text_bytes

BLOCK_BYTES = 4 << 20
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


@dataclass(frozen=True)
class Segment:
    """The bytes [start, end) of a file; `end` None is its end. Starts and ends at line boundaries."""

    path: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Piece:
    """What one worker reads: segments in order, the split and the source they belong to.

    text_bytes: estimated size of the uncompressed text.
    shard_tokens: about how many tokens the shards have that it is cut into.
    """

    segments: tuple[Segment, ...]
    held_out: bool
    text_bytes: int
    shard_tokens: int
    source: str = ""


def cut_pieces(files: Sequence[Path], shard_tokens: int, held_out: bool, source: str = "") -> list[Piece]:
    """Cut `files`, all of one source, into pieces of about a shard each, in the order of the files.

    A rest of less than half a shard is in one piece with what comes before it: the last shard may be held out.
    """
    piece_bytes = shard_tokens * BYTES_PER_TOKEN
    pieces: list[Piece] = []
    group: list[Path] = []
    sizes: list[int] = []

    def close_group(*, last: bool = False) -> None:
        if group:
            segments, size = tuple(Segment(str(file)) for file in group), sum(sizes)
            if last and pieces and 2 * size < piece_bytes:
                before = pieces.pop()
                segments, size = before.segments + segments, before.text_bytes + size
            pieces.append(Piece(segments, held_out, size, shard_tokens, source))
            group.clear()
            sizes.clear()

    for file in files:
        size = estimate_text_bytes(file)
        large = file.suffix != ".gz" and size > 1.5 * piece_bytes
        if large or sum(sizes) + size > 1.25 * piece_bytes:
            close_group()
        if large:
            pieces += [
                Piece((segment,), held_out, size, shard_tokens, source)
                for segment, size in _cut_file(file, size, piece_bytes)
            ]
        else:
            group.append(file)
            sizes.append(size)
    close_group(last=True)
    return pieces


def _cut_file(path: Path, size: int, piece_bytes: int) -> Iterator[tuple[Segment, int]]:
    """Cut a plain file into equal parts, moved to the next document where one starts soon, else to the next line.

    Yields each with its size.
    """
    parts = max(2, round(size / piece_bytes))
    with open(path, "rb") as file:
        cuts = [0]
        for part in range(1, parts):
            nominal = size * part // parts
            file.seek(nominal)
            ahead = file.read(min(1 << 20, piece_bytes // 4 + 1))
            match = _BLANK_LINE.search(ahead)
            cut = nominal + match.end() if match else nominal + len(ahead[: ahead.find(b"\n") + 1])
            while cut == nominal and ahead:  # no line ends in what was read, nor before the cut before
                nominal = max(nominal + len(ahead), cuts[-1] - 1)
                file.seek(nominal)
                ahead = file.read(1 << 20)
                cut = nominal + ahead.find(b"\n") + 1
            cuts.append(cut if ahead else size)
    for start, end in zip(cuts, [*cuts[1:], size], strict=True):
        if end > start:
            yield Segment(str(path), start, end), end - start


def read_blocks(segment: Segment, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[int, str]]:
    r"""Yield (number of the first line within the segment, text) for blocks of whole lines.

    Only "\n" ends a line; every text ends with one. Raises `InputError` naming file and line for invalid UTF-8, a
    broken gzip file, and a line of more than `MAX_LINE_BYTES`.
    """
    path = segment.path
    line = 1
    rest = b""
    with open_binary(path) as file:
        file.seek(segment.start)
        left = float("inf") if segment.end is None else segment.end - segment.start
        while True:
            try:
                data = file.read(int(min(block_bytes, left)))
            except BROKEN_GZIP as error:
                raise broken_gzip(path, line_number(segment, line + rest.count(b"\n")) - 1, error) from None
            left -= len(data)
            if len(rest) + (data.find(b"\n") if b"\n" in data else len(data)) > MAX_LINE_BYTES:
                raise line_too_long(path, line_number(segment, line))
            if data:
                cut = data.rfind(b"\n") + 1
                if not cut:
                    rest += data
                    continue
                block, rest = rest + data[:cut], data[cut:]
            elif rest:
                block, rest = rest + b"\n", b""
            else:
                return
            if line == 1 and segment.start == 0:
                block = block.removeprefix(b"\xef\xbb\xbf")
            try:
                text = block.decode("utf-8")
            except UnicodeDecodeError as error:
                number = line + block.count(b"\n", 0, error.start)
                raise invalid_utf8(path, line_number(segment, number), error) from None
            yield line, text
            line += block.count(b"\n")


def line_number(segment: Segment, line: int) -> int:
    """The number in the whole file of a line of the segment (both from 1); reads what stands before the segment."""
    before = 0
    if segment.start:
        with open(segment.path, "rb") as file:
            left = segment.start
            while left > 0 and (data := file.read(min(BLOCK_BYTES, left))):
                before += data.count(b"\n")
                left -= len(data)
    return before + line
