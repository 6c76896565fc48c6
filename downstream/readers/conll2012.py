"""Documents in the columns of CoNLL-2012: OntoNotes' words, predicates, arguments and coreference.

    #begin document (NAME); part NNN
    one word a line, a blank line after each sentence
    #end document

A word's columns, from 0, are separated by tabs or by any number of spaces: document, part, number in the sentence,
word (3), part of speech (4), parse (5), a predicate's lemma (6) and sense (7), word sense, speaker (9), named entity,
then one column of arguments for each predicate of the sentence (11 … −2), and coreference (−1).
"""

import re
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from downstream.readers.conll_columns import split_columns
from elmoc.errors import InputError
from elmoc.files.text import read_lines

WORD, PART_OF_SPEECH, PARSE, LEMMA, SENSE, SPEAKER, FIRST_ARGUMENT, COREFERENCE = 3, 4, 5, 6, 7, 9, 11, -1
"""Places of columns."""

LEAST_COLUMNS = 12
"""The columns of a sentence without predicates."""

NOTHING = "-"
"""The cell of a column that says nothing about a word."""

SKELETON_WORD = "[WORD]"
"""What stands for every word in files that are handed out without OntoNotes' text (`_skel`)."""

_BEGIN = re.compile(r"#begin document \((.{0,1000})\); part \d{1,9}\s*")
_BEGIN_EXPECTED = "`#begin document (NAME); part 000`"
_BRACKETS = re.compile(r"((?:\([^()*\s]{1,100})*)\*(\)*)")
_ARGUMENTS, _CONSTITUENTS = "*, (ARG0*, *) and (V*)", "*, (NP*, *)) and (TOP(S(NP*)"
_COREFERENCE_PART = re.compile(r"(\(?)(\d{1,100})(\)?)")


class Span(NamedTuple):
    """A label and the words it stands for, first and last, both inside."""

    label: str
    first: int
    last: int


@dataclass(frozen=True)
class DocumentSentence:
    """A sentence: `rows[i]` are the columns of its word i, on line `lines[i]` (from 1) of `file`."""

    file: str
    rows: list[list[str]]
    lines: list[int]

    def add(self, line: int, columns: list[str]) -> None:
        """Add a word; raises `InputError` unless it has as many columns as the words before it, and enough."""
        if len(columns) < LEAST_COLUMNS or (self.rows and len(columns) != len(self.rows[0])):
            expected = f"the sentence has {len(self.rows[0])}" if self.rows else f"at least {LEAST_COLUMNS} are needed"
            raise InputError(
                f"{self.file}, line {line}: {len(columns)} columns where {expected}; the line is damaged, or the file "
                "is not in the format of CoNLL-2012"
            )
        self.rows.append(columns)
        self.lines.append(line)

    def column(self, index: int) -> list[str]:
        """One column, from top to bottom: words as the file spells them, speakers (`-` for nobody) and so on."""
        return [row[index] for row in self.rows]

    @property
    def predicates(self) -> list[int]:
        """The words that have a sense in the frame files; each of them has a column of arguments."""
        return [place for place, row in enumerate(self.rows) if row[SENSE] != NOTHING]

    def arguments(self) -> list[list[Span]]:
        """For each column of arguments, its spans (`V` among them) by their first words, the outer before the inner.

        Raises `InputError` for a cell that is no bracket expression and for brackets that do not match.
        """
        width = len(self.rows[0])
        return [self._bracketed(index, "argument", _ARGUMENTS) for index in range(FIRST_ARGUMENT, width - 1)]

    def constituents(self) -> list[Span]:
        """The constituents of the parse by their first words, the outer before the inner.

        Raises `InputError` for a cell that is no bracket expression and for brackets that do not match.
        """
        return self._bracketed(PARSE, "parse", _CONSTITUENTS)

    def mentions(self) -> list[Span]:
        """The mentions of the coreference column, in the order of their first and last words; labels are clusters.

        A closing bracket ends the mention of its cluster that was opened last. Raises `InputError` for a cell that is
        no bracket expression and for brackets that do not match.
        """
        spans: list[Span] = []
        opened: dict[str, list[int]] = {}
        for place, cell in enumerate(self.column(COREFERENCE)):
            for part in [] if cell == NOTHING else cell.split("|"):
                match = _COREFERENCE_PART.fullmatch(part)
                if match is None or not (match[1] or match[3]):
                    raise self._unreadable(place, "coreference", cell, "cells like -, (12, 12), (12) and (12|(3) are")
                cluster = match[2]
                if match[1]:
                    opened.setdefault(cluster, []).append(place)
                if match[3]:
                    if not opened.get(cluster):
                        raise self._unmatched(place, f"{cluster})", "opened")
                    spans.append(Span(cluster, opened[cluster].pop(), place))
        for cluster, places in opened.items():
            if places:
                raise self._unmatched(places[-1], f"({cluster}", "closed")
        return sorted(spans, key=lambda span: (span.first, span.last))

    def _bracketed(self, index: int, what: str, examples: str) -> list[Span]:
        """The spans of a column; `what` it holds and `examples` of its cells are for errors."""
        spans: list[Span] = []
        opened: list[tuple[str, int]] = []
        for place, cell in enumerate(self.column(index)):
            match = _BRACKETS.fullmatch(cell)
            if match is None:
                raise self._unreadable(place, f"{what} (column {index})", cell, f"cells like {examples} are")
            opened += [(label, place) for label in match[1].split("(")[1:]]
            for _ in match[2]:
                if not opened:
                    raise self._unmatched(place, f"a ) of column {index}", "opened")
                label, first = opened.pop()
                spans.append(Span(label, first, place))
        if opened:
            raise self._unmatched(opened[-1][1], f"({opened[-1][0]}* of column {index}", "closed")
        spans.reverse()  # of spans of the same words, the outer was closed last
        return sorted(spans, key=lambda span: (span.first, -span.last))

    def _unreadable(self, place: int, what: str, cell: str, expected: str) -> InputError:
        return InputError(
            f"{self.file}, line {self.lines[place]}: the {what} cell {reprlib.repr(cell)} cannot be read; {expected} "
            "expected"
        )

    def _unmatched(self, place: int, what: str, missing: str) -> InputError:
        return InputError(
            f"{self.file}, line {self.lines[place]}: {what} is never {missing} in its sentence; it is damaged, or "
            "a line of the sentence is missing"
        )


@dataclass(frozen=True)
class Document:
    """A part of a document, which begins on `line` of the file; `heading` is that line: it tells parts from each other.

    Files differ in how they write the number of the part: `part 000` in OntoNotes, `part 0` in LitBank.
    """

    name: str
    heading: str
    sentences: list[DocumentSentence]
    line: int


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file (plain or `.gz`), each of which has a sentence at least.

    Raises `InputError` for a missing or damaged file, one without documents or without its words, words outside a
    document, documents that do not end, and sentences whose lines have different or too few columns.
    """
    document: Document | None = None
    sentence: DocumentSentence | None = None
    number = 0
    found = written = False
    for number, line in enumerate(read_lines(path), 1):
        columns = split_columns(line)
        if line.startswith("#begin document"):
            if document is not None:
                raise _endless(path, number, document)
            document = _begin(path, number, line)
        elif line.startswith("#end document"):
            if document is None:
                raise InputError(
                    f"{path}, line {number}: a document ends that did not begin; restore its #begin document"
                )
            if not document.sentences:
                raise InputError(f"{path}, line {document.line}: the document {document.name} is empty; take it out")
            yield document
            document, sentence, found = None, None, True
        elif not columns:
            sentence = None
        elif document is None:
            raise InputError(
                f"{path}, line {number}: a word stands outside a document; {_BEGIN_EXPECTED} is expected before it"
            )
        else:
            if sentence is None:
                sentence = DocumentSentence(str(path), [], [])
                document.sentences.append(sentence)
            sentence.add(number, columns)
            written |= columns[WORD] != SKELETON_WORD
    if document is not None:
        raise _endless(path, number, document)
    if not found:
        raise InputError(f"{path} holds no documents: {_BEGIN_EXPECTED} is expected before the first")
    if not written:
        raise InputError(
            f"{path} has {SKELETON_WORD} in the place of every word: put the words in, by the corpus's own script"
        )


def _begin(path: Path, line: int, text: str) -> Document:
    match = _BEGIN.fullmatch(text)
    if match is None:
        raise InputError(
            f"{path}, line {line}: {reprlib.repr(text.strip())} cannot be read; {_BEGIN_EXPECTED} is expected"
        )
    return Document(match[1], text, [], line)


def _endless(path: Path, line: int, document: Document) -> InputError:
    return InputError(
        f"{path}, line {line}: the document {document.name}, begun on line {document.line}, has no #end document; the "
        "file may be cut off"
    )
