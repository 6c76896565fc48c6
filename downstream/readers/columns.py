"""Sentences in columns, one word a line: CoNLL-2003, CoNLL-2012, GermEval and files
like them.

Columns are separated by tabs, or, in a line without a tab, by spaces. A line of white
space ends a sentence, and so does a line with `-DOCSTART-`.

Words are in the first column that neither counts them (0, 1, 2 … or 1, 2, 3 …) nor is
the same all through each sentence, such as the name of a document. A note says which,
unless it is column 0.

Comments begin with `# key = `, or they begin with #, stand before the words of a
sentence, and are no row of them: they have another number of columns, or no label. So a
tweet's first word may begin with #.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from seqeval.metrics.sequence_labeling import get_entities

from downstream.inputs.sentence import TaskSentence, make_sentence
from elmoc.errors import InputError, note, reason, shortened, warn
from elmoc.files.text import read_lines
from elmoc.text.tokenizer import SENTENCE_ENDS

# Beginnings of the lines before and behind a document of CoNLL-2012.
DOCUMENT_MARKS = ("#begin document", "#end document")

# What stands for every word in files that are handed out without their text.
SKELETON_WORDS = {"[WORD]", "_"}

# Names of a column of labels, as a row of headings has them.
_HEADING = re.compile(
    r"(ner?|bio|iob2?|entity|entities|labels?|tags?)([_ -](tag|label|type)s?)?",
    re.IGNORECASE,
)
# A language in front of a word, as WikiANN has it: `en:Lima`.
_LANGUAGE = re.compile(r"([a-z]{2,3}|simple)(-[a-z]{2,8}){0,3}:")
# Words of a sentence of which its end is likely to be missing.
_LONG = 1_000
_END = re.compile(f"[{SENTENCE_ENDS}]")

# At the beginning of a line.
_COMMENT = re.compile(r"#(begin document|end document| \S+ = )")
# Cells of brackets, and examples of them: labels at the opening bracket alone, or
# clusters of coreference at both.
_LABELLED = (re.compile(r"(?!$)(\([^()*|\s]{1,100})*\*?\)*"), "(ARG0* or *)")
_PART = r"(\(\d{1,100}\)?|\d{1,100}\))"
_CLUSTERS = (re.compile(rf"-|{_PART}(\|{_PART})*"), "-, (12, 12), (12) or (12|(3)")
# An opening bracket, a label and a closing bracket, or some of them.
_BRACKET = re.compile(r"(\(?)([^()*|]*)(\)?)")


class Span(NamedTuple):
    """A label and the words it stands for, first and last, both inside."""

    label: str
    first: int
    last: int


@dataclass(frozen=True)
class ColumnSentence:
    """A sentence: `rows[i]` are the columns of its word i, on line `lines[i]` (from 1)
    of `file`, or in a row of this number.
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
        return make_sentence(
            self.column(word_column), file=self.file, line=self.lines[0]
        )

    def error(self, word: int, what: str) -> InputError:
        """An error about one of its words, with file and line."""
        return InputError(f"{self.file}, line {self.lines[word]}: {reason(what)}")

    def bracketed(self, index: int, *, clusters: bool = False) -> list[Span]:
        """The spans of a column of brackets in the order in which they open, so that
        outer ones come before inner ones.

        Args:
            index: of the column.
            clusters: whether cells are such as `(12`, `12)`, `(12)|(3` and `-`, where a
                bracket closes the span of its cluster that was opened last; else they
                are such as `(ARG0*`, `*`, `*)` and `(GPE)`.
        """
        form, example = _CLUSTERS if clusters else _LABELLED
        spans: list[Span] = []
        # The numbers of the open spans, by the label at a closing bracket.
        opened: defaultdict[str, list[int]] = defaultdict(list)
        for place, cell in enumerate(self.column(index)):
            is_valid = form.fullmatch(cell)
            for opening, label, closing in _BRACKET.findall(cell):
                numbers = opened[label if clusters else ""]
                if opening:
                    numbers.append(len(spans))
                    # The end is known when the bracket is closed.
                    spans.append(Span(label, place, place))
                if not is_valid or (closing and not numbers):
                    raise self.error(
                        place,
                        f"column {index}: {cell!r} is no {example}, "
                        "or closes a span not open",
                    )
                if closing:
                    number = numbers.pop()
                    spans[number] = spans[number]._replace(last=place)
        for number in chain.from_iterable(opened.values()):
            raise self.error(
                spans[number].first,
                f"a bracket of column {index} is not closed in its sentence",
            )
        return spans


def outermost(spans: Sequence[Span]) -> list[Span]:
    """The spans that are in no other, of spans in the order of `bracketed`."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.first > kept[-1].last:
            kept.append(span)
    return kept


def bio_tags(spans: Iterable[Span], length: int) -> list[str]:
    """BIO tags of a sentence of `length` words for spans that do not overlap."""
    tags = ["O"] * length
    for label, first, last in spans:
        tags[first] = f"B-{label}"
        tags[first + 1 : last + 1] = [f"I-{label}"] * (last - first)
    return tags


def bio_spans(tags: Sequence[str]) -> list[Span]:
    """The spans of BIO tags as conlleval sees them: an `I-X` begins one where the word
    before is in no span of label X.
    """
    return [Span(*entity) for entity in get_entities(list(tags))]


def read_columns(
    path: Path, *, labels: re.Pattern[str] | None = None, column: int = -1
) -> tuple[list[ColumnSentence], dict[int, str]]:
    """The sentences of a file (plain or `.gz`), and its comments by their lines.

    Args:
        path: the file.
        labels: the form of a label, by which words with # are told from comments; None
            where all comments are of the form `# key = ` or lines around documents, and
            where sentences may have different numbers of columns, as in CoNLL-2012.
        column: of the labels.

    Raises:
        InputError: a file without sentences, or a line with another number of columns
            than the lines before.
    """
    lines = list(read_lines(path))
    rows = [split_columns(line) for line in lines]
    is_ragged = labels is None or any(line.startswith(DOCUMENT_MARKS) for line in lines)
    is_word = None if labels is None else _word_test(path, rows, labels, column)
    sentences: list[ColumnSentence] = []
    comments: dict[int, str] = {}
    # The sentence that the line before belongs to.
    sentence: ColumnSentence | None = None
    for number, (line, columns) in enumerate(zip(lines, rows, strict=True), 1):
        is_comment = bool(_COMMENT.match(line))
        if is_word and line.startswith("#") and sentence is None:
            is_comment = is_comment or not is_word(columns)
        if is_comment:
            comments[number] = line
        if is_comment or not columns:
            sentence = None
            continue
        if sentence is None:
            sentence = ColumnSentence(path, [], [])
            sentences.append(sentence)
        sentence.rows.append(columns)
        sentence.lines.append(number)
        # Columns of arguments differ from sentence to sentence, others do not.
        before = len((sentence if is_ragged else sentences[0]).rows[0])
        if len(columns) != before:
            raise sentence.error(
                -1,
                f"{len(columns)} columns where the lines before have {before}: tabs or "
                f"blanks divide columns, and here is {shortened(line, 40)!r}",
            )
    if not sentences:
        raise InputError(
            f"{path} holds no sentences: a word and its labels a line are expected"
        )
    return sentences, comments


def _word_test(
    path: Path, rows: Sequence[list[str]], labels: re.Pattern[str], column: int
) -> Callable[[list[str]], bool]:
    """A test whether a row that begins with # is a word, as a tweet's first, or else a
    comment, which has another number of columns, or no label.

    A row of headings is emptied, and a note says so; see `read_columns`.
    """
    # Lines that are surely words, but for a heading.
    sure = [row for row in rows if row and row[0][:1] != "#"]
    width = len(sure[0]) if sure else 0
    found = [row[column] for row in sure if -len(row) <= column < len(row)]
    if found and _HEADING.fullmatch(found[0]) and found.count(found[0]) == 1:
        note(f"{path}: the row of headings is left out: {' '.join(sure[0])}")
        # A line between sentences has no columns.
        sure[0].clear()
        del found[0]
    known = set(found)
    is_usual = len(known) > 1 and all(map(labels.fullmatch, known))

    def is_word(row: list[str]) -> bool:
        has_width = width in (0, len(row))
        # Labels of another form stand in other rows, too.
        has_label = any(map(labels.fullmatch, row)) or not known.isdisjoint(row[1:])
        # Some may not, but a comment begins with `# `.
        return has_width and (has_label or (not is_usual and row[:1] != ["#"]))

    return is_word


def check_words(sentences: Sequence[ColumnSentence], column: int) -> None:
    """Take off a language in front of every word of a file (`en:Lima`), and warn of one
    in front of most words, of a comma behind every word, and of sentences that have no
    end.
    """
    path = sentences[0].file
    rows = list(chain.from_iterable(each.rows for each in sentences))
    languages = [match[0] for row in rows if (match := _LANGUAGE.match(row[column]))]
    if len(languages) == len(rows):
        some = ", ".join(sorted(set(languages))[:5])
        note(f"{path}: {some} in front of all {len(rows):,} words is left out")
        for row in rows:
            row[column] = row[column].partition(":")[2]
    elif 2 * len(languages) > len(rows):
        warn(
            f"{path}: {len(languages):,} of {len(rows):,} words begin with a language, "
            f"such as {languages[0]}, and are read with it"
        )
    commas = sum(row[column].endswith(",") for row in rows)
    if len(rows) == commas > 1:
        warn(
            f"{path}: all {commas:,} words end with a comma, such as "
            f"{rows[0][column]!r}, and are read with it: tabs or blanks divide columns"
        )
    longest = max(sentences, key=lambda each: len(each.rows))
    words = longest.column(column)
    inner = sum(_END.fullmatch(word) is not None for word in words[:-1])
    if len(words) > _LONG or (inner and len(sentences) == 1):
        warn(
            f"{path}, line {longest.lines[0]}: one sentence has {len(words):,} words, "
            f"{inner:,} of which end one, as a full stop does: ends of sentences, such "
            "as blank lines, may be missing"
        )


def find_words(sentences: Sequence[ColumnSentence], given: int) -> int:
    """The column of the words: `given`, or where that is negative the first column that
    neither counts the words nor is the same all through each sentence, else 0.

    Raises:
        InputError: there are no words, or numbers in a column that is not given.
    """
    path = sentences[0].file
    found = max(given, 0)
    width = min(len(each.rows[0]) for each in sentences)
    # The last column has labels.
    for index in reversed(range(width - 1 if given < 0 else 0)):
        if not all(_is_of_order(each.column(index)) for each in sentences):
            found = index
    if found > 0 > given:
        note(
            f"{path}: columns before column {found} number the words, or name their "
            f"document: words are read from column {found}"
        )
    words = set(chain.from_iterable(each.column(found) for each in sentences))
    if words <= SKELETON_WORDS:
        raise InputError(
            f"{path} has {words.pop()} in the place of every word: "
            "the corpus's own script puts them in"
        )
    # Numbers, and ranges of them, are words where the user says so.
    if given < 0 and not any(map(str.isalpha, "".join(words))):
        raise InputError(
            f"{path}: column {found} holds numbers, no words: "
            "name their column with --word-column"
        )
    return found


def _is_of_order(cells: Sequence[str]) -> bool:
    """Whether the cells of a sentence are all the same, or count its words."""
    numbers = [int(cell) for cell in cells if re.fullmatch(r"\d{1,9}", cell)]
    steps = {after - before for before, after in pairwise(numbers)}
    return (len(numbers) == len(cells) and steps <= {1}) or len(set(cells)) == 1


def split_columns(line: str) -> list[str]:
    """The columns of a line, white space at their edges removed; none for a line
    between sentences.
    """
    # Words with blanks are found in columns between tabs alone.
    cells = line.split("\t") if "\t" in line else filter(None, line.split(" "))
    columns = [cell.strip() for cell in cells]
    return columns if any(columns) and "-DOCSTART-" not in columns else []
