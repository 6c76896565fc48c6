"""Documents in the columns of CoNLL-2012: OntoNotes' words, predicates, arguments and
coreference.

    #begin document (NAME); part NNN
    one word a line, a blank line after each sentence
    #end document

A word's columns, from 0, are separated by tabs or by any number of spaces: document,
part, number in the sentence, word (3), part of speech, parse, a predicate's lemma (6)
and sense (7), word sense, speaker (9), named entity, then one column of arguments for
each predicate of the sentence (11 … −2), and coreference (−1). Other files are read,
too, the last two of which have no lines around documents:

| file | columns |
|---|---|
| of coreference alone | document, part, number, word, coreference |
| PropBank's own release | 0 to 7 as above, the sense being `close.01`, then arguments |
| CoNLL-2005 | word, others or none, a predicate's lemma, then arguments |
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from downstream.readers.columns import (
    DOCUMENT_MARKS,
    ColumnSentence,
    Span,
    check_words,
    find_words,
    read_columns,
)
from elmoc.errors import InputError

# Places of columns.
WORD = 3
SPEAKER = 9
COREFERENCE = -1
# The cell of a column that says nothing about a word.
NOTHING = "-"

# The lines around a document, as messages name them.
_MARKS = "`#begin document (NAME); part 000` and #end document"
_BEGIN = re.compile(r"#begin document \(.{0,1000}\)(; part \d{1,9})?;?\s*")


class Layout(NamedTuple):
    """Places of the columns of predicates.

    word: of the words.
    lemma: of predicates' lemmas.
    sense: what is there tells which words are predicates.
    arguments: a column for each predicate.
    """

    word: int = WORD
    lemma: int = 6
    sense: int = 7
    arguments: slice = slice(11, -1)


CONLL_2012 = Layout()
PROPBANK = Layout(arguments=slice(8, None))


@dataclass(frozen=True)
class Document:
    """A part of a document.

    heading: its first line, which has its name and tells parts from each other; "" for
        all of PropBank's release. Files differ in how they write the number of the
        part: `part 000` in OntoNotes, `part 0` in LitBank.
    sentences: one or more.
    layout: of their columns.
    """

    heading: str
    sentences: list[ColumnSentence]
    layout: Layout = CONLL_2012


def read_documents(path: Path, *, arguments: bool) -> list[Document]:
    """The documents of a file (plain or `.gz`) that have a sentence; a file without
    lines around documents is one.

    Args:
        path: the file.
        arguments: whether predicates' arguments are read, or else coreference.

    Raises:
        InputError: documents do not begin and end in turn, the lines of a sentence have
            different numbers of columns, or there is no document.
    """
    sentences, comments = read_columns(path)
    marks = [line for line, text in comments.items() if text.startswith(DOCUMENT_MARKS)]
    is_marked = bool(marks) or not arguments
    layout = CONLL_2012 if is_marked else _find_layout(sentences)
    layout = layout._replace(word=find_words(sentences, layout.word))
    check_words(sentences, layout.word)
    if not is_marked:
        return [Document("", sentences, layout)]
    documents: list[Document] = []
    for place, line in enumerate(marks):
        begins = _BEGIN.fullmatch(comments[line]) is not None
        if begins != (place % 2 == 0):
            raise InputError(f"{path}, line {line}: {_MARKS} take turns")
        if begins:
            documents.append(Document(comments[line], []))
    for sentence in sentences:
        # The mark after the sentence: the marks before it are an odd number.
        place = bisect(marks, sentence.lines[0])
        if place % 2 == 0 or place == len(marks):
            raise sentence.error(0, f"the sentence is not between {_MARKS}")
        documents[place // 2].sentences.append(sentence)
    return [document for document in documents if document.sentences]


def arguments_of(sentence: ColumnSentence, document: Document) -> list[list[Span]]:
    """For each column of arguments, its spans (`V` among them) by their first words,
    the outer before the inner.
    """
    columns = range(len(sentence.rows[0]))
    return [sentence.bracketed(index) for index in columns[document.layout.arguments]]


def _find_layout(sentences: Sequence[ColumnSentence]) -> Layout:
    """The layout of a file without lines around documents.

    Raises:
        InputError: a file of another kind.
    """
    path = sentences[0].file
    rows = list(chain.from_iterable(each.rows for each in sentences))
    if all(len(row) > 13 and row[12] in ("Y", "_") for row in rows):
        raise InputError(
            f"{path} is CoNLL-2009, whose arguments are single words: give the same "
            "sentences as CoNLL-2005 or CoNLL-2012, whose arguments are spans"
        )
    # In how many sentences as many columns follow a column as it has predicates.
    fits: Counter[int] = Counter()
    for each in sentences:
        width = len(each.rows[0])
        for column in range(width):
            predicates = [cell for cell in each.column(column) if cell != NOTHING]
            fits[column] += len(predicates) == width - 1 - column
    # Columns of a short sentence may fit by chance, before those of the predicates.
    sense = max(fits, key=lambda column: (fits[column], column))
    if not fits[sense]:
        raise sentences[0].error(
            0,
            "no column of predicates (or -) has a column of arguments for each of them "
            "behind it, as in CoNLL-2012, PropBank's release and CoNLL-2005",
        )
    # PropBank's release counts the words of a sentence.
    if sense == PROPBANK.sense and all(row[2:3] and row[2].isdecimal() for row in rows):
        return PROPBANK
    if sense == 0:
        raise InputError(
            f"{path} has predicates and arguments (CoNLL-2005), but no words: put them "
            "in front, as by `paste -d ' ' words props`"
        )
    return Layout(-1, sense, sense, slice(sense + 1, None))
