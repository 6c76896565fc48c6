"""Documents in the columns of CoNLL-2012: OntoNotes' words, predicates, arguments and
coreference.

    #begin document (NAME); part NNN
    one word a line, a blank line after each sentence
    #end document

A word's columns, from 0, are separated by tabs or by any number of spaces: document,
part, number in the sentence, word (3), part of speech, parse, a predicate's lemma (6)
and sense (7), word sense, speaker (9), named entity, then one column of arguments for
each predicate of the sentence (11 … −2), and coreference (−1). Two other files are
read:

| file | columns |
|---|---|
| of coreference alone | document, part, number, word, coreference |
| PropBank's own release, without lines around documents | 0 to 7 as above, the sense
being `close.01`, then arguments |
"""

import re
from bisect import bisect
from dataclasses import dataclass
from pathlib import Path

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
LEMMA = 6
SENSE = 7
SPEAKER = 9
COREFERENCE = -1
# The cell of a column that says nothing about a word.
NOTHING = "-"

# The lines around a document, as messages name them.
_MARKS = "`#begin document (NAME); part 000` and #end document"
_BEGIN = re.compile(r"#begin document \(.{0,1000}\)(; part \d{1,9})?;?\s*")


@dataclass(frozen=True)
class Document:
    """A part of a document.

    heading: its first line, which has its name and tells parts from each other; "" for
        all of PropBank's release. Files differ in how they write the number of the
        part: `part 000` in OntoNotes, `part 0` in LitBank.
    sentences: one or more.
    """

    heading: str
    sentences: list[ColumnSentence]


def read_documents(path: Path, *, arguments: bool) -> list[Document]:
    """The documents of a file (plain or `.gz`) that have a sentence; PropBank's release
    is one.

    Args:
        path: the file.
        arguments: whether predicates' arguments are read, or else coreference.

    Raises:
        InputError: documents do not begin and end in turn, the lines of a sentence have
            different numbers of columns, or there is no document.
    """
    sentences, comments = read_columns(path)
    find_words(sentences, WORD)
    check_words(sentences, WORD)
    marks = [line for line, text in comments.items() if text.startswith(DOCUMENT_MARKS)]
    if arguments and not marks:
        return [Document("", sentences)]
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
    # PropBank's release, which has no headings, lacks columns on both sides.
    own = columns[11:-1] if document.heading else columns[8:]
    return [sentence.bracketed(index) for index in own]
