"""Sentences in columns, one word a line: CoNLL-2003, CoNLL-2012, GermEval and files
like them.

Columns are separated by tabs, or, in a line without a tab, by spaces. A line of white
space ends a sentence. Lines with `-DOCSTART-` are skipped.

Words are in the first column that neither counts them (0, 1, 2 … or 1, 2, 3 …) nor is
the same all through each sentence, such as the name of a document. A note says which,
unless it is column 0.

Comments begin with `# key = `, or they begin with #, stand before the words of a
sentence, and are no row of them: they have another number of columns, or no label in
the column of the labels. So a tweet's first word may begin with #.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.printing import note
from elmoc.errors import InputError, reason
from elmoc.files.text import read_lines

DOCUMENT_START = "-DOCSTART-"
# Beginnings of the lines before and behind a document of CoNLL-2012.
DOCUMENT_MARKS = ("#begin document", "#end document")

# What stands for every word in files that are handed out without their text.
SKELETON_WORDS = ("[WORD]", "_")

# At the beginning of a line.
_COMMENT = re.compile(r"#(begin document|end document| \S+ = )")
_ANYTHING = re.compile(r"(?s).*")
_BRACKETS = re.compile(r"((?:\([^()*\s]{1,100})*)(\*?)(\)*)")


class Span(NamedTuple):
    """A label and the words it stands for, first and last, both inside."""

    label: str
    first: int
    last: int


@dataclass(frozen=True)
class ColumnSentence:
    """A sentence: `rows[i]` are the columns of its word i, on line `lines[i]` (from 1)
    of `file`.
    """

    file: Path
    rows: list[list[str]]
    lines: list[int]

    def column(self, index: int) -> list[str]:
        """One column, from top to bottom, as the file spells it; raises `InputError`
        where there is none.
        """
        width = len(self.rows[0])
        if not -width <= index < width:
            raise self.error(0, f"there is no column {index} among {width} columns")
        return [row[index] for row in self.rows]

    def sentence(self, word_column: int) -> TaskSentence:
        """Its words in the spelling of tokenised text."""
        words = self.column(word_column)
        return make_sentence(words, file=self.file, line=self.lines[0])

    def error(self, word: int, what: str) -> InputError:
        """An error about one of its words, with file and line."""
        return InputError(f"{self.file}, line {self.lines[word]}: {reason(what)}")

    def bracketed(self, index: int) -> list[Span]:
        """The spans of a column of brackets, such as `(ARG0*`, `*`, `*)` and `(GPE)`,
        outer ones before inner ones.
        """
        spans: list[Span] = []
        opened: list[tuple[str, int]] = []
        for place, cell in enumerate(self.column(index)):
            match = _BRACKETS.fullmatch(cell)
            labels = match[1].split("(")[1:] if match else []
            opened += [(label, place) for label in labels]
            if not match or not cell or len(match[3]) > len(opened):
                raise self.error(
                    place,
                    f"column {index}: {cell!r} is no (ARG0* or *), "
                    "or closes a span not open",
                )
            for _ in match[3]:
                label, first = opened.pop()
                spans.append(Span(label, first, place))
        if opened:
            _, place = opened[-1]
            raise self.error(
                place, f"a bracket of column {index} is not closed in its sentence"
            )
        # The outer one of two spans of the same words was closed last.
        spans.reverse()
        return sorted(spans, key=lambda span: (span.first, -span.last))


@dataclass(frozen=True)
class ColumnFile:
    """The sentences of a file, its comments by their lines, and the column of the
    words.
    """

    sentences: list[ColumnSentence]
    comments: dict[int, str]
    word_column: int


def outermost(spans: Sequence[Span]) -> list[Span]:
    """The spans that are in no other, of spans in the order of `bracketed`."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.first > kept[-1].last:
            kept.append(span)
    return kept


def bio_tags(spans: Sequence[Span], length: int) -> list[str]:
    """BIO tags of a sentence of `length` words for spans that do not overlap."""
    tags = ["O"] * length
    for label, first, last in spans:
        tags[first] = f"B-{label}"
        tags[first + 1 : last + 1] = [f"I-{label}"] * (last - first)
    return tags


def read_columns(
    path: Path,
    *,
    word_column: int | None = None,
    column: int = -1,
    labels: re.Pattern[str] = _ANYTHING,
    ragged: bool = False,
) -> ColumnFile:
    """Read a file (plain or `.gz`).

    Args:
        path: the file.
        word_column: where the words are, if that is known.
        column: where the labels are.
        labels: the form of a label.
        ragged: whether sentences have different numbers of columns, as those of
            CoNLL-2012 do.

    Raises:
        InputError: a file without sentences, a line with another number of columns than
            the lines before, or numbers in place of words.
    """
    lines = list(read_lines(path))
    rows = [split_columns(line) for line in lines]
    ragged = ragged or any(line.startswith(DOCUMENT_MARKS) for line in lines)
    # Numbers of columns of the lines that are surely words: a comment has others.
    widths = set()
    for line, columns in zip(lines, rows, strict=True):
        if columns and not line.startswith("#"):
            widths.add(len(columns))
    sentences: list[ColumnSentence] = []
    comments: dict[int, str] = {}
    # Whether the line before is a word of a sentence.
    inside = False
    for number, (line, columns) in enumerate(zip(lines, rows, strict=True), 1):
        is_comment = bool(_COMMENT.match(line))
        # A tweet's first word may begin with #: a row of words has a label.
        if line.startswith("#") and not inside and not is_comment:
            has_width = len(columns) in widths or not widths
            has_column = -len(columns) <= column < len(columns)
            has_label = has_column and labels.fullmatch(columns[column])
            is_comment = not (has_width and has_label)
        if is_comment:
            comments[number] = line
            inside = False
            continue
        if not columns or DOCUMENT_START in columns:
            inside = False
            continue
        if not inside:
            sentences.append(ColumnSentence(path, [], []))
        inside = True
        sentence = sentences[-1]
        sentence.rows.append(columns)
        sentence.lines.append(number)
        # Columns of arguments differ from sentence to sentence, others do not.
        like = sentence if ragged else sentences[0]
        width = len(like.rows[0])
        if len(columns) != width:
            raise sentence.error(
                -1, f"{len(columns)} columns where the lines before have {width}"
            )
    if not sentences:
        raise InputError(
            f"{path} holds no sentences: a word and its labels a line are expected"
        )
    found = _find_words(sentences) if word_column is None else word_column
    _check_words(path, sentences, found, is_given=word_column is not None)
    return ColumnFile(sentences, comments, found)


def _check_words(
    path: Path, sentences: Sequence[ColumnSentence], column: int, *, is_given: bool
) -> None:
    words: set[str] = set()
    for sentence in sentences:
        words.update(sentence.column(column))
    if words <= set(SKELETON_WORDS):
        raise InputError(
            f"{path} has {words.pop()} in the place of every word: "
            "the corpus's own script puts them in"
        )
    # Numbers are words where the user says so.
    if not is_given and all(map(str.isdecimal, words)):
        raise InputError(
            f"{path}: column {column} holds numbers, no words: "
            "name their column with --word-column"
        )


def _find_words(sentences: Sequence[ColumnSentence]) -> int:
    """The first column that neither counts the words nor is the same all through each
    sentence; 0 if there is none.
    """
    # Columns of single words are always "the same all through".
    several = any(len(each.rows) > 1 for each in sentences)
    for index in range(min(len(each.rows[0]) for each in sentences) - 1):
        columns = [each.column(index) for each in sentences]
        same = several and all(len(set(cells)) == 1 for cells in columns)
        if not same and not all(map(_counts, columns)):
            if index:
                note(
                    f"{sentences[0].file}: columns before column {index} number the "
                    "words, or name their document: "
                    f"words are read from column {index}"
                )
            return index
    return 0


def _counts(cells: Sequence[str]) -> bool:
    """Whether these are whole numbers, each one more than that before."""
    if not all(re.fullmatch(r"\d{1,9}", cell) for cell in cells):
        return False
    return all(int(after) == int(before) + 1 for before, after in pairwise(cells))


def split_columns(line: str) -> list[str]:
    """The columns of a line, white space at their edges removed; none for a line of
    white space.
    """
    if not line.strip():
        return []
    # Words with blanks are found in columns between tabs alone.
    if "\t" in line:
        return [column.strip() for column in line.split("\t")]
    return [column.strip() for column in line.split(" ") if column]
