"""Documents in the columns of CoNLL-2012: OntoNotes' words, predicates, arguments and coreference.

    #begin document (NAME); part NNN
    one word a line, a blank line after each sentence
    #end document

A word's columns, from 0, are separated by tabs or by any number of spaces: document, part, number in the sentence,
word (3), part of speech (4), parse (5), a predicate's lemma (6) and sense (7), word sense, speaker (9), named entity,
then one column of arguments for each predicate of the sentence (11 … −2), and coreference (−1).
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from downstream.readers.conll_columns import split_columns
from elmoc.errors import InputError, reason
from elmoc.files.text import read_lines

# Places of columns.
WORD, PART_OF_SPEECH, PARSE, LEMMA, SENSE, SPEAKER, FIRST_ARGUMENT, COREFERENCE = 3, 4, 5, 6, 7, 9, 11, -1
# The columns of a sentence without predicates.
LEAST_COLUMNS = 12
# The cell of a column that says nothing about a word.
NOTHING = "-"
# What stands for every word in files that are handed out without OntoNotes' text (`_skel`).
SKELETON_WORD = "[WORD]"

_BEGIN = re.compile(r"#begin document \((.{0,1000})\); part \d{1,9}\s*")
_BRACKETS = re.compile(r"((?:\([^()*\s]{1,100})*)\*(\)*)")
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

    def column(self, index: int) -> list[str]:
        """One column, from top to bottom: words as the file spells them, speakers (`-` for nobody) and so on."""
        return [row[index] for row in self.rows]

    def error(self, word: int, what: str) -> InputError:
        """An error about one of its words, with file and line."""
        return InputError(f"{self.file}, line {self.lines[word]}: {reason(what)}")

    def arguments(self) -> list[list[Span]]:
        """For each column of arguments, its spans (`V` among them) by their first words, the outer before the inner."""
        return [self._bracketed(index) for index in range(FIRST_ARGUMENT, len(self.rows[0]) - 1)]

    def constituents(self) -> list[Span]:
        """The constituents of the parse by their first words, the outer before the inner."""
        return self._bracketed(PARSE)

    def mentions(self) -> list[Span]:
        """The mentions of the coreference column, in the order of their first and last words; labels are clusters.

        A closing bracket ends the mention of its cluster that was opened last.
        """
        spans: list[Span] = []
        opened: defaultdict[str, list[int]] = defaultdict(list)
        for place, cell in enumerate(self.column(COREFERENCE)):
            for part in [] if cell == NOTHING else cell.split("|"):
                match = _COREFERENCE_PART.fullmatch(part)
                if match is None or not (match[1] or (match[3] and opened[match[2]])):
                    raise self.error(place, f"{cell!r} is no -, (12, 12), (12) or (12|(3), or closes what is not open")
                if match[1]:
                    opened[match[2]].append(place)
                if match[3]:
                    spans.append(Span(match[2], opened[match[2]].pop(), place))
        for place in (each for places in opened.values() for each in places):
            raise self.error(place, "a mention is not closed in its sentence")
        return sorted(spans, key=lambda span: (span.first, span.last))

    def _bracketed(self, index: int) -> list[Span]:
        """The spans of a column of arguments or of the parse."""
        spans: list[Span] = []
        opened: list[tuple[str, int]] = []
        for place, cell in enumerate(self.column(index)):
            match = _BRACKETS.fullmatch(cell)
            opened += [(label, place) for label in match[1].split("(")[1:]] if match else []
            if match is None or len(match[2]) > len(opened):
                raise self.error(place, f"column {index}: {cell!r} is no (ARG0* or *), or closes what is not open")
            for _ in match[2]:
                spans.append(Span(*opened.pop(), place))
        if opened:
            raise self.error(opened[-1][1], f"a bracket of column {index} is not closed in its sentence")
        spans.reverse()  # of spans of the same words, the outer was closed last
        return sorted(spans, key=lambda span: (span.first, -span.last))


@dataclass(frozen=True)
class Document:
    """A part of a document; `heading` is its first line, which tells parts from each other.

    Files differ in how they write the number of the part: `part 000` in OntoNotes, `part 0` in LitBank.
    """

    name: str
    heading: str
    sentences: list[DocumentSentence]


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a file (plain or `.gz`) that have a sentence.

    Raises `InputError` with the line where documents do not begin and end in turn, or a sentence has lines of different
    or too few columns; and for a file without documents or without its words.
    """
    document: Document | None = None
    sentence: DocumentSentence | None = None
    number = 0
    found = written = False
    for number, line in enumerate(read_lines(path), 1):
        columns = split_columns(line)
        begin = _BEGIN.fullmatch(line)
        if columns and (begin is None) == (document is None):
            raise InputError(f"{path}, line {number}: `#begin document (NAME); part 000` or #end is missing before it")
        if begin is not None:
            document = Document(begin[1], line, [])
        elif not columns:
            sentence = None
        elif line.startswith("#end document"):
            assert document is not None
            if document.sentences:
                yield document
            document, sentence, found = None, None, True
        else:
            assert document is not None
            if sentence is None:
                sentence = DocumentSentence(str(path), [], [])
                document.sentences.append(sentence)
            sentence.rows.append(columns)
            sentence.lines.append(number)
            if not LEAST_COLUMNS <= len(columns) == len(sentence.rows[0]):
                raise sentence.error(
                    -1, f"{len(columns)} columns: a sentence has {LEAST_COLUMNS} or more, all lines alike"
                )
            written |= columns[WORD] != SKELETON_WORD
    if document is not None or not found:
        raise InputError(f"{path}, line {number}: there is no #end document: it is cut off, or no CoNLL-2012")
    if not written:
        raise InputError(f"{path} has {SKELETON_WORD} in the place of every word: the corpus's own script puts them in")
