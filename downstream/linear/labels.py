"""Labels of words: what linear classifiers are asked to find, read from task files.

| label | files | of a word |
|---|---|---|
| `pos` | CoNLL-2012 | its part of speech |
| `constituent` | CoNLL-2012 | the label of the lowest constituent that holds it and other words, too |
| `constituent:K` | CoNLL-2012 | the label of the K-th such constituent above it; 1 is the lowest |
| `column:N` | CoNLL columns, the word first | the cell of column N, from 0; -1 is the last |
| `deprel` | CoNLL-U | its relation to the word that it depends on, without subtypes (`nsubj` for `nsubj:pass`) |
| `upos`, `xpos` | CoNLL-U | its part of speech, universal or the language's own |

Parents, grandparents and so on in constituency trees are what Blevins et al. (2018) ask of layers; constituents of one
word, which the part of speech gives away, are left out here.
"""

import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from downstream.inputs.sentence import Sentence, make_sentence
from downstream.readers.conll2012 import PART_OF_SPEECH, WORD, DocumentSentence, Span, read_documents
from downstream.readers.conll_columns import ColumnSentence, read_columns
from downstream.readers.conllu import COLUMNS, FORM, read_conllu
from elmoc.errors import InputError, shortened

KINDS = "pos, constituent, constituent:K, column:N, deprel, upos or xpos"
_LABEL = re.compile(r"pos|constituent(:[1-9]\d{0,2})?|column:-?\d{1,5}|deprel|upos|xpos")
_FORMATS = {"column": "files whose first column is the word", "deprel": "CoNLL-U files"}
_FORMATS |= {"upos": _FORMATS["deprel"], "xpos": _FORMATS["deprel"]}
_FUNCTION_TAG = re.compile(r"(?<=.)[-=|].*")
"""What follows the label of a constituent in some treebanks: `NP-SBJ`."""

Labels = list[str | None]
"""Of the words of a sentence; None where a word has no label of the kind."""


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence, and for each kind of label that was asked for those of its words."""

    sentence: Sentence
    labels: list[Labels]


def check_labels(kinds: Sequence[str]) -> None:
    """Raise an `InputError` for a kind of label that there is not, and for kinds that do not go together."""
    for kind in kinds:
        if not _LABEL.fullmatch(kind):
            raise InputError(f"--label {shortened(kind)} is not possible: give {KINDS}")
    formats = {_FORMATS.get(kind.partition(":")[0], "CoNLL-2012 files"): kind for kind in kinds}
    if len(formats) > 1:
        of_formats = ", ".join(f"{kind} is a label of {files}" for files, kind in formats.items())
        raise InputError(f"--label {' '.join(kinds)} is not possible: {of_formats}; ask for them by several commands")


def read_labelled(path: Path, kinds: Sequence[str]) -> Iterator[LabelledSentence]:
    """Yield the sentences of a file with the labels of these kinds, which `check_labels` has seen.

    Raises `InputError` with file and line for what cannot be read.
    """
    if kinds[0].startswith("column:"):
        numbers = [int(kind.partition(":")[2]) for kind in kinds]
        for columns in read_columns(path):
            words = make_sentence([row[0] for row in columns.rows], file=path, line=columns.lines[0])
            yield LabelledSentence(words, [_column(columns, number, path) for number in numbers])
        return
    if kinds[0] in COLUMNS:
        for columns in read_conllu(path):
            words = make_sentence([row[FORM] for row in columns.rows], file=path, line=columns.lines[0])
            yield LabelledSentence(words, [_of_conllu(columns, kind) for kind in kinds])
        return
    readers = [_reader(kind) for kind in kinds]
    for document in read_documents(path):
        for rows in document.sentences:
            words = make_sentence(rows.column(WORD), file=path, line=rows.lines[0])
            yield LabelledSentence(words, [read(rows) for read in readers])


def _reader(kind: str) -> Callable[[DocumentSentence], Labels]:
    if kind == "pos":
        return lambda rows: [*rows.column(PART_OF_SPEECH)]
    height = int(kind.partition(":")[2] or 1)
    return lambda rows: constituent_labels(rows.constituents(), words=len(rows.rows), height=height)


def _column(columns: ColumnSentence, number: int, path: Path) -> Labels:
    width = len(columns.rows[0])
    place = number + width if number < 0 else number
    if not 0 < place < width:
        raise InputError(
            f"{path}, line {columns.lines[0]}: there is no column {number} of labels; the line has {width} columns, "
            "the first (0) being the word"
        )
    for row, line in zip(columns.rows, columns.lines, strict=True):
        if not row[place]:
            raise InputError(f"{path}, line {line}: the word {reprlib.repr(row[0])} has no label: the cell is empty")
    return [row[place] for row in columns.rows]


def _of_conllu(columns: ColumnSentence, kind: str) -> Labels:
    """A column of CoNLL-U, in which _ is a word without a label."""
    cells = [row[COLUMNS.index(kind)] for row in columns.rows]
    labels = [cell.partition(":")[0] for cell in cells] if kind == "deprel" else cells
    return [None if label in ("", "_") else label for label in labels]


def constituent_labels(spans: Sequence[Span], *, words: int, height: int = 1) -> Labels:
    """For each word the label of the `height`-th constituent above it that holds other words, too; None without one.

    Of constituents that hold the same words, the lowest is meant. Function tags are taken off labels.

    spans  by their first words, the outer before the inner
    """
    labels: Labels = []
    above: list[Span] = []
    inner = iter([*(span for span in spans if span.last > span.first), Span("", words, words)])
    following = next(inner)
    for place in range(words):
        while above and above[-1].last < place:
            above.pop()
        while following.first == place:
            if above and above[-1][1:] == following[1:]:
                above.pop()
            above.append(following)
            following = next(inner)
        labels.append(_FUNCTION_TAG.sub("", above[-height].label) if len(above) >= height else None)
    return labels
