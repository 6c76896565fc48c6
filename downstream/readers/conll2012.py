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
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from downstream.readers.columns import (
    DOCUMENT_MARKS,
    ColumnSentence,
    Span,
    read_columns,
)
from elmoc.errors import InputError

# Places of columns.
DOCUMENT = 0
WORD = 3
LEMMA = 6
SENSE = 7
SPEAKER = 9
COREFERENCE = -1
# The columns of a sentence without predicates: in CoNLL-2012, in PropBank's own files,
# in files of coreference alone.
CONLL_2012 = 12
PROPBANK = 8
MINIMAL = 5
# The cell of a column that says nothing about a word.
NOTHING = "-"

# The lines around a document, as messages name them.
_MARKS = "`#begin document (NAME); part 000` and #end document"
_BEGIN = re.compile(r"#begin document \((.{0,1000})\)(; part \d{1,9})?;?\s*")
_COREFERENCE_PART = re.compile(r"(\(?)(\d{1,100})(\)?)")


@dataclass(frozen=True)
class Document:
    """A part of a document.

    name: of the document.
    heading: its first line, which tells parts from each other; "" in PropBank's
        release. Files differ in how they write the number of the part: `part 000` in
        OntoNotes, `part 0` in LitBank.
    sentences: one or more.
    """

    name: str
    heading: str
    sentences: list[ColumnSentence]


def read_documents(path: Path, *, arguments: bool) -> list[Document]:
    """The documents of a file (plain or `.gz`) that have a sentence.

    Args:
        path: the file.
        arguments: whether predicates' arguments are read, or else coreference.

    Raises:
        InputError: documents do not begin and end in turn, a sentence has too few
            columns or lines of different numbers of them, or there is no document.
    """
    file = read_columns(path, word_column=WORD, ragged=True)
    comments = file.comments.items()
    marks = [(line, each) for line, each in comments if each.startswith(DOCUMENT_MARKS)]
    least = MINIMAL
    if arguments:
        least = CONLL_2012 if marks else PROPBANK
    for sentence in file.sentences:
        columns = len(sentence.rows[0])
        if columns < least:
            what = f"{columns} columns: there have to be {least} or more"
            raise sentence.error(0, what)
    if arguments and not marks:
        named = groupby(file.sentences, key=lambda sentence: sentence.rows[0][DOCUMENT])
        return [Document(name, "", list(sentences)) for name, sentences in named]
    documents: list[Document] = []
    for place, (line, text) in enumerate(marks):
        begin = _BEGIN.fullmatch(text)
        is_expected = place % 2 == 0
        if bool(begin) != is_expected:
            raise InputError(f"{path}, line {line}: {_MARKS} take turns")
        if begin:
            documents.append(Document(begin[1], text, []))
    lines = [line for line, _ in marks]
    for sentence in file.sentences:
        # The mark after the sentence: the marks before it are an odd number.
        place = bisect(lines, sentence.lines[0])
        if place % 2 == 0 or place == len(lines):
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


def mentions_of(sentence: ColumnSentence) -> list[Span]:
    """The mentions of the coreference column, in the order of their first and last
    words; labels are clusters.

    A closing bracket ends the mention of its cluster that was opened last.
    """
    spans: list[Span] = []
    # Cluster → the first words of its mentions that are open.
    opened: defaultdict[str, list[int]] = defaultdict(list)
    for place, cell in enumerate(sentence.column(COREFERENCE)):
        if cell == NOTHING:
            continue
        for part in cell.split("|"):
            match = _COREFERENCE_PART.fullmatch(part)
            if match and match[1]:
                opened[match[2]].append(place)
            if not match or not opened[match[2]] or not (match[1] or match[3]):
                what = f"{cell!r} is no -, (12, 12), (12) or (12|(3)"
                raise sentence.error(place, f"{what}, or closes a span not open")
            if match[3]:
                spans.append(Span(match[2], opened[match[2]].pop(), place))
    for places in opened.values():
        if places:
            raise sentence.error(places[0], "a mention is not closed in its sentence")
    return sorted(spans, key=lambda span: (span.first, span.last))
