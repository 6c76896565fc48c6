"""Readers: what a kind of text is to the project, and how plain text is read."""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from elmoc.batches import buffered
from elmoc.errors import InputError
from elmoc.files.compression import (
    PACKED,
    AnyPath,
    compression,
    first_bytes,
    unpacked_name,
)
from elmoc.files.text import MAX_LINE_BYTES, read_lines
from elmoc.text.scripts import unspaced_problem
from elmoc.text.tokenizer import looks_raw

# Bytes of text for each compressed byte.
COMPRESSION = 2.7
# Characters of each file by which it is judged: some hundred lines.
SAMPLE_CHARACTERS = 10_000
# Bytes behind a wanted cut in which the end of a document is looked for, at most.
_MOST_LOOKED_AT = 1 << 20
_RAW = (
    "looks like text that is not tokenised, as most of its commas and the like touch a "
    "word: give what `python -m data_scripts.tokenize` makes of it"
)
# A row of columns: fields divided by tabs, or a tag of an entity or a chunk at its end.
_COLUMNS = re.compile(r"\t|\s(?:O|[BIES]-\S+)$")


@dataclass(frozen=True)
class TextRange:
    """A part of a file of text, [start, end) as its reader counts: in bytes of plain
    text and of JSON lines, where lines begin.

    field: of rows, the column that holds the text; None for text without columns.
        `whole_files` chooses it.
    """

    path: AnyPath
    start: int = 0
    end: int = sys.maxsize
    field: str | None = None


@dataclass(frozen=True)
class TextDocument:
    """A document, which is read while its lines are iterated over: once, and before the
    next document is asked for.

    The lines of the documents of a text file, one after the other, are the lines of the
    file: a blank line belongs to the document that it ends.

    name: its key, where it has one; else the path of its file.
    lines: lines of text without line ends, or lists of words where it is tokenised; ()
        for a row that has no text.
    tokenised: whether its text comes divided into words, so that `lines` are lists.
    line: where it begins: the number of the line in its file, or in its `TextRange`; or
        of the row.
    unit: what `line` counts where the document is of a row: `line` or `row`; else "".
    """

    name: str
    lines: Iterable[str | list[str]]
    tokenised: bool = False
    line: int = 1
    unit: str = ""

    def sentences(self) -> Iterator[list[str]]:
        """The words of each line; no words for a blank one. Words of a line of text are
        what blanks divide.
        """
        for line in self.lines:
            yield line.split() if isinstance(line, str) else line

    def place(self, index: int) -> str:
        """What errors call the line with an index, e.g. `line 3`."""
        if self.tokenised:
            return f"{self.unit or 'line'} {self.line} sentences[{index}]"
        return f"{self.unit} {self.line}" if self.unit else f"line {self.line + index}"


class TextReader(ABC):
    """How one kind of text is read: all that differs from one kind to another.

    has_keys: whether its documents are named by keys of their own.
    document_end: where a file may be cut; None where it can only be read as a whole.
    """

    has_keys = False
    document_end: re.Pattern[bytes] | None = None

    @abstractmethod
    def takes(self, path: AnyPath) -> bool:
        """Whether a file is of this kind."""

    @abstractmethod
    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """Yield the documents of a part of a file, in their order; one without lines
        for a row that has no text.
        """

    def choose_field(self, path: AnyPath, field: str | None) -> str | None:
        """The column that holds the text of a file; None where it has no columns.

        Args:
            path: of the file.
            field: the column that was asked for.
        """
        return None

    def is_tokenised(self, text: TextRange) -> bool:
        """Whether a text comes divided into words, as its first document says."""
        with_text = (each for each in self.read(text) if each.lines != ())
        return next((each.tokenised for each in with_text), False)

    def sample(self, text: TextRange, characters: int = SAMPLE_CHARACTERS) -> list[str]:
        """The lines at the beginning of a text, by which it is judged; see
        `first_lines`.
        """
        return first_lines(lines_of(self.read(text)), characters)

    def problem(self, text: TextRange) -> str:
        """What to tell of text that does not look tokenised, which may be meant; else
        "".
        """
        sample = "\n".join(self.sample(text))
        return unspaced_problem(sample) or (_RAW if looks_raw(sample) else "")

    def text_bytes(self, path: AnyPath) -> int:
        """About how many bytes of text a file holds (exact for a plain file)."""
        size = os.stat(path).st_size
        return int(size * COMPRESSION) if first_bytes(path).startswith(PACKED) else size

    def divide(
        self, text: TextRange, wanted_bytes: int, *, between_lines: bool = True
    ) -> list[TextRange]:
        """A whole file in parts of about the wanted size.

        Each cut is moved to where the next document starts, if one does soon; else to
        the next line, or, without `between_lines`, left out.
        """
        size = self.text_bytes(text.path)
        # A compressed file can only be read from its beginning.
        is_whole = compression(text.path) or size <= 1.5 * wanted_bytes
        if self.document_end is None or is_whole:
            return [text]
        parts = max(2, round(size / wanted_bytes))
        looked_at = min(_MOST_LOOKED_AT, wanted_bytes // 4 + 1)
        cuts = {0, size}
        with open(text.path, "rb") as file:
            for part in range(1, parts):
                nominal = size * part // parts
                file.seek(nominal)
                end = self.document_end.search(file.read(looked_at))
                if end:
                    cuts.add(nominal + end.end())
                elif between_lines:
                    file.seek(nominal)
                    # A longer line is refused where it is read.
                    file.readline(MAX_LINE_BYTES + 1)
                    cuts.add(file.tell())
        ranges = pairwise(sorted(cuts))
        return [replace(text, start=start, end=end) for start, end in ranges]


class PlainText(TextReader):
    """Lines of text, plain or compressed."""

    document_end = re.compile(rb"\n[ \t\r]*\n")

    def takes(self, path: AnyPath) -> bool:
        """Whatever is of no other kind is text."""
        return True

    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """See `TextReader`. A part of a file begins a document."""
        lines = enumerate(read_lines(text.path, text.start, text.end), 1)
        for number, line in lines:
            document = until_blank(line, lines)
            yield TextDocument(str(text.path), document, line=number)
            # Lines that the caller left belong to this document all the same.
            for _ in document:
                pass

    def problem(self, text: TextRange) -> str:
        """See `TextReader`. Columns are refused, and JSON that is not a line a row."""
        if unpacked_name(text.path).lower().endswith(".json"):
            raise InputError(
                f"{text.path} is not JSON lines: give an object on each, e.g. what "
                f"`jq -c '.[]' {text.path}` prints"
            )
        lines = map(str.strip, self.sample(text))
        # Comments of CoNLL-U have no columns.
        rows = [line for line in lines if line[:1] not in ("", "#")]
        if 2 * len(list(filter(_COLUMNS.search, rows))) > len(rows):
            raise InputError(
                f"{text.path} has columns: give the sentences alone, which `python -m "
                "downstream sentences` prints"
            )
        return super().problem(text)


def as_text(line: str | list[str]) -> str:
    """A line of a document; words of a tokenised one have a blank between them."""
    return line if isinstance(line, str) else " ".join(line)


def until_blank(first: str, others: Iterator[tuple[int, str]]) -> Iterator[str]:
    """The first line of a document and those that follow, up to a blank one."""
    for line in chain([first], (line for _, line in others)):
        yield line
        if not line.strip():
            return


def first_lines(lines: Iterable[str], characters: int) -> list[str]:
    """The first lines of a text, up to this number of characters; a longer line is cut
    to it.
    """
    beginning: list[str] = next(buffered(lines, len, most=characters), [])
    return [line[:characters] for line in beginning]


def lines_of(documents: Iterable[TextDocument]) -> Iterator[str]:
    """The lines of documents, one after the other; a blank line ends each document but
    the last, and words have one blank between them.
    """
    text = ""
    for document in documents:
        begins = True
        for line in document.lines:
            # A word of a list may hold an end of a line.
            parts = [line] if isinstance(line, str) else " ".join(line).split()
            # A list without words is no sentence, and no end of a document.
            if parts:
                if begins and text.strip():
                    yield ""
                begins = False
                text = " ".join(parts)
                yield text
