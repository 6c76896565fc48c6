"""Labels of words: what are linear classifiers asked to find, and how is it read from task files?

| label | files | of a word |
|---|---|---|
| `pos` | CoNLL-2012 | its part of speech |
| `constituent` | CoNLL-2012 | the label of the lowest constituent that holds it and other words, too |
| `column:N` | CoNLL columns, the word first | the cell of column N, from 0; -1 is the last |
| `deprel` | CoNLL-U | its relation to the word that it depends on, without subtypes (`nsubj` for `nsubj:pass`) |
| `upos`, `xpos` | CoNLL-U | its part of speech, universal or the language's own |

Constituents of one word, which the part of speech gives away, are left out (compare Blevins et al. 2018).
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from downstream.inputs.sentence import Sentence, make_sentence
from downstream.readers.conll2012 import PART_OF_SPEECH, WORD, Span, read_documents
from downstream.readers.conll_columns import read_columns
from downstream.readers.conllu import COLUMNS, FORM, read_conllu
from elmoc.errors import InputError, reading

KINDS = "pos, constituent, column:N, deprel, upos or xpos"
_FORMATS = {"pos": 2012, "constituent": 2012, "deprel": "u", "upos": "u", "xpos": "u"}
_FUNCTION_TAG = re.compile(r"(?<=.)[-=|].*")  # what follows the label of a constituent in some treebanks: NP-SBJ

# of the words of a sentence; None where a word has no label of the kind
Labels = list[str | None]


def check_labels(kinds: Sequence[str]) -> None:
    """Raise an `InputError` for a kind of label that there is not, and for kinds of files of different formats."""
    for kind in kinds:
        if kind not in _FORMATS and not re.fullmatch(r"column:-?\d+", kind):
            raise InputError(f"--label {kind} is not possible: give {KINDS}")
    if len({_FORMATS.get(kind) for kind in kinds}) > 1:
        raise InputError(f"--label {' '.join(kinds)}: these are labels of different formats of files")


def read_labelled(path: Path, kinds: Sequence[str]) -> Iterator[tuple[Sentence, list[Labels]]]:
    """Yield the sentences of a file, and for each kind, which `check_labels` has seen, the labels of their words.

    Raises `InputError` with file and line for what cannot be read.
    """
    if kinds[0].startswith("column:"):
        for columns in read_columns(path):
            words = make_sentence([row[0] for row in columns.rows], file=path, line=columns.lines[0])
            numbers = [int(kind.partition(":")[2]) for kind in kinds]
            with reading(f"{path}, line {columns.lines[0]}"):
                labels = [[row[number] or None for row in columns.rows] for number in numbers]
            yield words, labels
    elif _FORMATS[kinds[0]] == "u":
        for columns in read_conllu(path):
            words = make_sentence([row[FORM] for row in columns.rows], file=path, line=columns.lines[0])
            labels = []
            for kind in kinds:
                cells = [row[COLUMNS.index(kind)] for row in columns.rows]
                cells = [cell.partition(":")[0] for cell in cells] if kind == "deprel" else cells
                labels.append([None if cell in ("", "_") else cell for cell in cells])
            yield words, labels
    else:
        for document in read_documents(path):
            for rows in document.sentences:
                words = make_sentence(rows.column(WORD), file=path, line=rows.lines[0])
                found: dict[str, Labels] = {"pos": [*rows.column(PART_OF_SPEECH)]}
                if "constituent" in kinds:
                    found["constituent"] = constituent_labels(rows.constituents(), len(words.words))
                yield words, [found[kind] for kind in kinds]


def constituent_labels(spans: Sequence[Span], words: int) -> Labels:
    """For each word the label of the lowest constituent above it that holds other words, too; None without one.

    Function tags are taken off labels.

    spans  by their first words, the outer before the inner
    """
    labels: Labels = [None] * words
    for span in spans:
        if span.last > span.first:
            for place in range(span.first, span.last + 1):
                labels[place] = _FUNCTION_TAG.sub("", span.label)
    return labels
