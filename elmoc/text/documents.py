"""Documents: how text of any kind comes in, one document after the other.

Each kind of text has a `TextReader` in `READERS`. All else asks `read_documents` for
the documents, and `reader_of` for what has to be known before: how large a text is,
and where it can be divided among processes.

    documents   JSON lines, a document each, with `doc_key` and `sentences` (lists of
                words), as e2e-coref reads; by the name of the file
    text        lines of text, plain or compressed (gzip, bzip2, xz); a blank line and
                the end of a file end a document
"""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Annotated

import msgspec

from elmoc.batches import buffered
from elmoc.errors import InputError, reading, say
from elmoc.files.compression import compression, unpacked_name
from elmoc.files.text import MAX_LINE_BYTES, read_lines
from elmoc.text.named_files import AnyPath, find_named_files, rereadable
from elmoc.text.tokenizer import looks_raw

# Of tokenised English, spaces included. Where a corpus is cut into shards depends on
# both numbers.
BYTES_PER_TOKEN = 5
# Bytes of text for each compressed byte.
COMPRESSION = 2.7
# Characters of each file by which it is judged: some hundred lines.
SAMPLE_CHARACTERS = 10_000
# A row of columns: fields divided by tabs, or a tag of an entity or a chunk at its end.
_COLUMNS = re.compile(r"\t|\s(?:O|[BIES]-\S+)$")
# Bytes behind a wanted cut in which a blank line is looked for, at most.
_MOST_LOOKED_AT = 1 << 20
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


@dataclass(frozen=True)
class TextRange:
    """A part of a file of text, [start, end) as its reader counts: in bytes of plain
    text. It begins and ends at line boundaries.
    """

    path: AnyPath
    start: int = 0
    end: int = sys.maxsize


@dataclass(frozen=True)
class TextDocument:
    """A document, which is read while its lines are iterated over: once, and before the
    next document is asked for.

    The lines of the documents of a text file, one after the other, are the lines of the
    file: a blank line belongs to the document that it ends.

    name: its key, where it has one; else the path of its file.
    lines: lines of text without line ends, or lists of words where it is tokenised.
    tokenised: whether its text comes divided into words, so that `lines` are lists.
    line: where it begins: the number of the line in its file, or in its `TextRange`.
    """

    name: str
    lines: Iterable[str | list[str]]
    tokenised: bool = False
    line: int = 1

    def sentences(self) -> Iterator[list[str]]:
        """The words of each line; no words for a blank one. Words of a line of text are
        what blanks divide.
        """
        for line in self.lines:
            yield line.split() if isinstance(line, str) else line


class TextReader(ABC):
    """How one kind of text is read: all that differs from one kind to another.

    tokenised: whether its documents come divided into words.
    """

    tokenised = False

    @abstractmethod
    def takes(self, path: AnyPath) -> bool:
        """Whether a file is of this kind."""

    @abstractmethod
    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """Yield the documents of a part of a file, in their order."""

    def check(self, path: AnyPath, *, warn: bool = True) -> None:  # noqa: B027
        """Raise an `InputError` where the beginning of a file shows that it is not
        tokenised text; with `warn`, warn of what is only likely.
        """

    def text_bytes(self, path: AnyPath) -> int:
        """About how many bytes of text a file holds (exact for a plain file)."""
        size = os.stat(path).st_size
        return int(size * COMPRESSION) if compression(path) else size

    def divide(self, path: AnyPath, wanted_bytes: int) -> list[TextRange]:
        """A file in parts of about the wanted size, where it can be entered in the
        middle.
        """
        return [TextRange(path)]


class PlainText(TextReader):
    """Lines of text, plain or compressed."""

    def takes(self, path: AnyPath) -> bool:
        """Whatever is of no other kind is text."""
        return True

    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """See `TextReader`. A part of a file begins a document."""
        lines = enumerate(read_lines(text.path, text.start, text.end), 1)
        for number, line in lines:
            document = _until_blank(line, lines)
            yield TextDocument(str(text.path), document, line=number)
            # Lines that the caller left belong to this document all the same.
            for _ in document:
                pass

    def check(self, path: AnyPath, *, warn: bool = True) -> None:
        """See `TextReader`. JSON lines and columns are refused; raw text, which may be
        meant, is warned of on standard error.
        """
        sample = first_lines(read_lines(path), SAMPLE_CHARACTERS)
        rows = [line.strip() for line in sample if line.strip()]
        if rows and all(re.match(r'\{\s*"', row) for row in rows):
            raise InputError(
                f"{path} holds JSON lines: give the text in them, e.g. what "
                f"`jq -r .text {path}` prints"
            )
        # Comments of CoNLL-U have no columns.
        rows = [row for row in rows if not row.startswith("#")]
        if 2 * len(list(filter(_COLUMNS.search, rows))) > len(rows):
            raise InputError(
                f"{path} has columns: give the sentences alone, which `python -m "
                "downstream sentences` prints"
            )
        if warn and looks_raw("\n".join(sample)):
            say(
                f"warning: {path} looks like text that is not tokenised, as most of "
                "its commas and the like touch a word: give what `python -m "
                "data_scripts.tokenize` makes of it",
                file=sys.stderr,
            )

    def divide(self, path: AnyPath, wanted_bytes: int) -> list[TextRange]:
        """See `TextReader`. A plain file is cut into equal parts; each cut is moved to
        where the next document starts, if one does soon, else to the next line.
        """
        size = self.text_bytes(path)
        # A compressed file can only be read from its beginning.
        if compression(path) or size <= 1.5 * wanted_bytes:
            return [TextRange(path)]
        parts = max(2, round(size / wanted_bytes))
        looked_at = min(_MOST_LOOKED_AT, wanted_bytes // 4 + 1)
        cuts = {0, size}
        with open(path, "rb") as file:
            for part in range(1, parts):
                nominal = size * part // parts
                file.seek(nominal)
                blank = _BLANK_LINE.search(file.read(looked_at))
                file.seek(nominal + blank.end() if blank else nominal)
                if not blank:
                    # A longer line is refused where it is read.
                    file.readline(MAX_LINE_BYTES + 1)
                cuts.add(file.tell())
        return [TextRange(path, start, end) for start, end in pairwise(sorted(cuts))]


def first_lines(lines: Iterable[str], characters: int) -> list[str]:
    """The first lines of a text, up to this number of characters; a longer line is cut
    to it.
    """
    beginning: list[str] = next(buffered(lines, len, most=characters), [])
    return [line[:characters] for line in beginning]


def _until_blank(first: str, others: Iterator[tuple[int, str]]) -> Iterator[str]:
    """The first line of a document and those that follow, up to a blank one."""
    for line in chain([first], (line for _, line in others)):
        yield line
        if not line.strip():
            return


class _JsonDocument(msgspec.Struct):
    """A line of JSON; what else stands in it (speakers, clusters) is not read. No name
    in HDF5 is `.`.
    """

    doc_key: Annotated[str, msgspec.Meta(pattern=r"^(?!\.$)[^\0]+$")]
    sentences: Annotated[
        list[list[Annotated[str, msgspec.Meta(min_length=1)]]],
        msgspec.Meta(min_length=1),
    ]


class JsonDocuments(TextReader):
    """Tokenised documents as JSON lines; a line is in memory as a whole."""

    tokenised = True

    def takes(self, path: AnyPath) -> bool:
        """Files called `.jsonl` or `.jsonlines`, compressed or not."""
        return unpacked_name(path).endswith((".jsonl", ".jsonlines"))

    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """See `TextReader`."""
        for number, line in enumerate(read_lines(text.path), 1):
            if line.strip():
                with reading(f"{text.path}, line {number}"):
                    found = msgspec.json.decode(line, type=_JsonDocument)
                yield TextDocument(found.doc_key, found.sentences, True, number)


# The kinds of text by their names. The first one that takes a file reads it.
READERS: dict[str, TextReader] = {"documents": JsonDocuments(), "text": PlainText()}


def reader_of(path: AnyPath) -> TextReader:
    """The reader of a file."""
    return next(reader for reader in READERS.values() if reader.takes(path))


def read_documents(
    source: AnyPath | TextRange, *, kind: str | None = None
) -> Iterator[TextDocument]:
    """Yield the documents of a source, one after the other; text of any kind comes in
    here.

    Args:
        source: a file, a folder, a glob, `NAME=PATH` of these, `-` for standard input,
            or a part of a file.
        kind: one of `READERS`, for text that its name does not tell.

    Raises:
        InputError: a source that names no file, and text that cannot be read; it names
            file and line.
    """
    if isinstance(source, TextRange):
        reader = READERS[kind] if kind else reader_of(source.path)
        yield from reader.read(source)
        return
    with rereadable(source) as path:
        for file in find_named_files([path]):
            yield from read_documents(TextRange(file), kind=kind)


def lines_of(documents: Iterable[TextDocument]) -> Iterator[str]:
    """The lines of documents, one after the other; a blank line ends each document but
    the last, and words have one blank between them.
    """
    text = ""
    for document in documents:
        if text.strip():
            yield ""
        for line in document.lines:
            text = line if isinstance(line, str) else " ".join(line)
            yield text


def estimate_text_bytes(files: Iterable[AnyPath]) -> int:
    """About how many bytes of text files of any kind hold."""
    return sum(reader_of(file).text_bytes(file) for file in files)
