"""Pieces of text: how are files cut into pieces of bounded size, and how is a piece read?

A piece is what one worker reads: a byte range of a large plain file, one whole `.gz` file (gzip cannot be entered in
the middle), or several small files. The cut depends on the files and the wanted size alone, never on the workers.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError, reading
from elmoc.files.text import MAX_LINE_BYTES, open_binary
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
    pieces: list[TextPiece] = []
    group: list[Path] = []
    sizes: list[int] = []

    def close_group(*, last: bool = False) -> None:
        if group:
            segments, size = tuple(Segment(str(file)) for file in group), sum(sizes)
            if last and pieces and 2 * size < piece_bytes:
                before = pieces.pop()
                segments, size = before.segments + segments, before.text_bytes + size
            pieces.append(TextPiece(segments, held_out, size, shard_tokens, source))
            group.clear()
            sizes.clear()

    for file in files:
        size = estimate_text_bytes(file)
        large = file.suffix != ".gz" and size > 1.5 * piece_bytes
        if large or sum(sizes) + size > 1.25 * piece_bytes:
            close_group()
        if large:
            for segment, bytes_of_segment in _cut_file(file, size, piece_bytes):
                pieces.append(TextPiece((segment,), held_out, bytes_of_segment, shard_tokens, source))
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


def read_blocks(segment: Segment, block_bytes: int = BLOCK_BYTES) -> Iterator[str]:
    r"""Yield the text of a segment in blocks of whole lines; only "\n" ends a line, and every text ends with one.

    Raises `InputError` naming file and line for invalid UTF-8, a NUL character, and the words `<s>` and `</s>`; naming
    the file for broken gzip data and a line of more than `MAX_LINE_BYTES`.
    """
    position, rest = segment.start, b""
    with reading(segment.path), open_binary(segment.path) as file:
        file.seek(segment.start)
        while True:
            most = block_bytes if segment.end is None else min(block_bytes, segment.end - file.tell())
            data = rest + file.read(most)
            ended = len(data) == len(rest)
            cut = len(data) if ended else data.rfind(b"\n") + 1
            block, rest = data[:cut], data[cut:]
            if len(rest) > MAX_LINE_BYTES:
                raise InputError(f"{segment.path}: a line is longer than {MAX_LINE_BYTES >> 20} MiB")
            if block:
                yield _text_of(segment, block, position)
                position += len(block)
            if ended:
                return


def _text_of(segment: Segment, block: bytes, position: int) -> str:
    """The text of a block that stands at a position (in bytes, uncompressed) of its file."""

    def line_of(byte: int) -> int:
        with open_binary(segment.path) as file:
            left = position + byte
            blocks = (file.read(min(BLOCK_BYTES, left - start)) for start in range(0, left, BLOCK_BYTES))
            return 1 + sum(block.count(b"\n") for block in blocks)

    try:
        text = block.decode("utf-8-sig" if position == 0 else "utf-8")
    except UnicodeDecodeError as error:
        byte = block[error.start : error.start + 1].hex()
        raise InputError(
            f"{segment.path}, line {line_of(error.start)}: byte 0x{byte} is not valid UTF-8; convert the file, for "
            "instance with iconv"
        ) from None
    may_be_refused = any(mark in text for mark in (BEGIN, END, "\0"))  # seen a hundred times faster than by a pattern
    if may_be_refused and (found := _REFUSED.search(text)):
        line = line_of(len(text[: found.start()].encode()))
        raise InputError(f"{segment.path}, line {line}: the text holds {found[0]!r}, which marks an end: take it out")
    return text if text.endswith("\n") else f"{text}\n"
