"""Sentences in CoNLL-U, the format of Universal Dependencies (universaldependencies.org/format.html).

Ten columns a word, separated by tabs; lines that begin with # are comments, and a line of white space ends a sentence.
Multiword tokens (ids such as 1-2) and empty nodes (1.1) are no words of the tree, and skipped. (The package `conllu`
does not say in which line a file is damaged.)
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from downstream.readers.conll_columns import ColumnSentence
from elmoc.errors import InputError
from elmoc.files.text import read_lines

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FORM = COLUMNS.index("form")


def read_conllu(path: Path) -> Iterator[ColumnSentence]:
    """Yield the sentences of a file (plain or `.gz`); raises `InputError` with the line for what is no CoNLL-U."""
    rows: list[list[str]] = []
    lines: list[int] = []
    words = set()
    for number, line in enumerate(chain(read_lines(path), [""]), 1):
        if not line.strip():
            if rows:
                yield ColumnSentence(rows, lines)
            rows, lines = [], []
        elif not line.startswith("#"):
            row = [column.strip() for column in line.split("\t")]
            if re.fullmatch(r"\d+[-.]\d+", row[0]):
                continue
            if len(row) != len(COLUMNS) or row[0] != str(len(rows) + 1):
                raise InputError(
                    f"{path}, line {number}: {len(COLUMNS)} columns separated by tabs are expected, the first being "
                    f"{len(rows) + 1}"
                )
            rows.append(row)
            lines.append(number)
            words.add(row[FORM])
    if words <= {"_"}:  # also what is handed out without the text
        raise InputError(f"{path} holds no words: column 2 has them")
