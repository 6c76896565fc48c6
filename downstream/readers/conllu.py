"""Sentences in CoNLL-U, the format of Universal Dependencies (universaldependencies.org/format.html).

Ten columns a word, separated by tabs; lines that begin with # are comments, and a line of white space ends a sentence.
Multiword tokens (ids such as 1-2) and empty nodes (1.1) are no words of the tree, and skipped.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from downstream.readers.conll_columns import ColumnSentence
from elmoc.errors import InputError, shortened
from elmoc.files.text import read_lines

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FORM = COLUMNS.index("form")
_WORD = re.compile(r"[1-9]\d*")
_NO_WORD = re.compile(r"\d+[-.]\d+")


def read_conllu(path: Path) -> Iterator[ColumnSentence]:
    """Yield the sentences of a file (plain or `.gz`).

    Raises `InputError` with file and line for a missing or damaged file, and one without sentences.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    empty = True
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            if rows:
                yield ColumnSentence(rows, lines)
            rows, lines = [], []
        elif not line.startswith("#"):
            row = [column.strip() for column in line.split("\t")]
            if len(row) != len(COLUMNS):
                raise InputError(
                    f"{path}, line {number}: CoNLL-U has {len(COLUMNS)} columns separated by tabs, and this line "
                    f"{len(row)}: give a .conllu file"
                )
            if _WORD.fullmatch(row[0]):
                rows.append(row)
                lines.append(number)
                empty = False
            elif not _NO_WORD.fullmatch(row[0]):
                raise InputError(f"{path}, line {number}: {shortened(row[0])} is not the number of a word")
    if rows:
        yield ColumnSentence(rows, lines)
    if empty:
        raise InputError(f"{path} holds no sentences: words in the ten columns of CoNLL-U are expected")
