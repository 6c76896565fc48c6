"""Sentences in CoNLL-U, the format of Universal Dependencies (universaldependencies.org/format.html).

Ten columns a word, separated by tabs; lines that begin with # are comments, and a line of white space ends a sentence.
Multiword tokens (ids such as 1-2) and empty nodes (1.1) are no words of the tree, and skipped. (The package `conllu`
does not say in which line a file is damaged.)
"""

import re
from collections.abc import Iterator
from pathlib import Path

from downstream.readers.conll_columns import ColumnSentence
from elmoc.errors import InputError, shortened
from elmoc.files.text import read_lines

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
FORM = COLUMNS.index("form")
_NO_WORD = re.compile(r"\d+[-.]\d+")


def read_conllu(path: Path) -> Iterator[ColumnSentence]:
    """Yield the sentences of a file (plain or `.gz`).

    Raises `InputError` with file and line for a missing or damaged file, and one without sentences.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    words = set()
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
            if _NO_WORD.fullmatch(row[0]):
                continue
            if row[0] != str(len(rows) + 1):
                raise InputError(
                    f"{path}, line {number}: {shortened(row[0])!r} stands where the number of word {len(rows) + 1} of "
                    "its sentence is expected; is a blank line missing before it?"
                )
            if not row[FORM]:
                raise InputError(f"{path}, line {number}: the word (column 2) is empty")
            rows.append(row)
            lines.append(number)
            words.add(row[FORM])
    if rows:
        yield ColumnSentence(rows, lines)
    if not words:
        raise InputError(f"{path} holds no sentences: words in the ten columns of CoNLL-U are expected")
    if words == {"_"}:
        raise InputError(f"{path} has _ in the place of every word: put the words in, by the treebank's own script")
