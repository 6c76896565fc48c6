"""Sentences in CoNLL columns, one word a line.

Columns are separated by tabs, or, in a line without a tab, by spaces. A line of white space ends a sentence;
`-DOCSTART-` lines are skipped. All lines of a file have the same number of columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.text import read_lines

DOCUMENT_START = "-DOCSTART-"


@dataclass(frozen=True)
class ColumnSentence:
    """A sentence: `rows[i]` are the columns of its word i, on line `lines[i]` (from 1) of the file."""

    rows: list[list[str]]
    lines: list[int]


def read_columns(path: Path) -> Iterator[ColumnSentence]:
    """Yield the sentences of a file (plain or `.gz`).

    Raises `InputError` for a file without sentences, and for a line with another number of columns than the first.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    width = 0
    for number, line in enumerate(chain(read_lines(path), [""]), 1):  # the last sentence ends, too
        columns = split_columns(line)
        if columns and columns[0] != DOCUMENT_START:
            width = width or len(columns)
            if len(columns) != width:
                raise InputError(f"{path}, line {number}: {len(columns)} columns where the lines before have {width}")
            rows.append(columns)
            lines.append(number)
        elif rows:
            yield ColumnSentence(rows, lines)
            rows, lines = [], []
    if not width:
        raise InputError(f"{path} holds no sentences: a word and its tags a line are expected")


def split_columns(line: str) -> list[str]:
    """The columns of a line, white space at their edges removed; none for a line of white space."""
    if not line.strip():
        return []
    if "\t" in line:
        return [column.strip() for column in line.split("\t")]
    return [column.strip() for column in line.split(" ") if column]
