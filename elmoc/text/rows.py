"""Rows: how a row of a table, or an item of a Python iterable, becomes documents, and
which of its columns holds the text.

The text of a row is one of

    a string                  lines of text; blank lines in it end documents, too
    a list of words           a document of one tokenised sentence
    a list of lists of words  a document of tokenised sentences

An array may stand for a list. Empty words are left out. A row in which the text is
missing, empty or anything else has no text.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Annotated, Any

import msgspec

from elmoc.errors import InputError, say, shortened
from elmoc.files.compression import AnyPath
from elmoc.text.reader import (
    TextDocument,
    TextRange,
    TextReader,
    until_blank,
)

# Rows at the beginning of a file by which its column of text is chosen.
SAMPLE_ROWS = 100
# The column that is taken where there are several.
TEXT = "text"
# In the place of a word: some words hold a blank, but no four of them.
_SENTENCE = re.compile(r"\S(\s+\S+){4}")
# A word of a tokenised sentence.
Word = Annotated[str, msgspec.Meta(min_length=1)]


class RowReader(TextReader):
    """A kind of text whose rows are documents.

    unit: what the numbers of rows count: `line` or `row`.
    """

    unit = "row"

    @abstractmethod
    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the numbers and the columns of rows; of `text.field` alone, if any."""

    def read(self, text: TextRange) -> Iterator[TextDocument]:
        """See `TextReader`."""
        field = text.field or self.choose_field(text.path, None)
        for number, row in self.rows(text):
            yield from row_documents(row.get(field), str(text.path), number, self.unit)

    def choose_field(self, path: AnyPath, field: str | None) -> str:
        """See `TextReader`."""
        sample = islice(self.rows(TextRange(path)), SAMPLE_ROWS)
        return choose_column([row for _, row in sample], field, path)


@dataclass
class RowCount:
    """How many rows of a source were read, and how many of them have no text."""

    rows: int = 0
    without_text: int = 0

    def with_text(self, documents: Iterable[TextDocument]) -> Iterator[TextDocument]:
        """Yield the documents that have text, and count the rows."""
        last = 0
        for document in documents:
            # A row may be several documents.
            self.rows += document.unit != "" and document.line != last
            last = document.line
            if document.lines == ():
                self.without_text += 1
            else:
                yield document

    def tell(self, source: object) -> None:
        """Print how many rows of a source have no text, if any."""
        if self.without_text:
            say(
                f"{source}: {self.without_text:,} of {self.rows:,} rows have no text "
                "and are left out"
            )


def choose_column(
    rows: Sequence[Mapping[str, Any]], field: str | None, source: object
) -> str:
    """The column that holds the text of a source.

    Args:
        rows: at its beginning.
        field: the column that was asked for; by default `text`, or the only one that
            holds text, which is more than numbers.
        source: what errors name.

    Raises:
        InputError: there is no such column.
    """
    columns = list(dict.fromkeys(map(str, chain.from_iterable(rows))))
    found = {each for each in columns if any(_is_prose(row.get(each)) for row in rows)}
    # A number is no name: the first line of the table is a row.
    are_names = not any(map(str.isdigit, columns))
    chosen = field or TEXT
    if field is None and TEXT not in columns and len(found) == 1 and are_names:
        chosen = found.pop()
    if chosen not in columns and columns:
        raise InputError(
            f"{source} has {shortened(', '.join(columns), 300)}, and no column "
            f"{chosen!r}: name that of the text by --field (in Python field=)"
        )
    return chosen


def row_documents(
    value: Any, name: str, line: int, unit: str = "row"
) -> Iterator[TextDocument]:
    """The documents of the text of a row; one without lines where it has none.

    Args:
        value: the text, or a document, which stays as it is.
        name: of the source.
        line: the number of the row.
        unit: what `line` counts.
    """
    if isinstance(value, TextDocument):
        yield value
    elif isinstance(text := row_text(value), str):
        lines = iter([each.rstrip("\r") for each in text.strip("\r\n").split("\n")])
        for first in lines:
            document = list(until_blank(first, zip(repeat(line), lines, strict=False)))
            yield TextDocument(name, document, line=line, unit=unit)
    else:
        for word in filter(_SENTENCE.search, chain.from_iterable(text)):
            raise InputError(
                f"{name}, {unit} {line}: a list of strings is a sentence, and "
                f"{shortened(word)!r} is no word: give text as one string, or "
                "sentences as lists of words"
            )
        yield TextDocument(name, text or (), bool(text), line, unit)


def row_text(value: Any) -> str | Sequence[str | list[str]]:
    """The text of a row, or of a document, as a string or as sentences, of which there
    are none where it has no text.
    """
    if isinstance(value, str):
        # A string of NumPy is none that JSON knows.
        return str(value) if value.strip() else []
    if isinstance(value, TextDocument):
        lines = list(value.lines)
        return lines if value.tokenised else "\n".join(map(str, lines))
    items = _as_list(value)
    if not isinstance(items, Sequence):
        return []
    is_words = any(isinstance(each, str) for each in items)
    with suppress(msgspec.ValidationError):
        # Tables may have nothing in the place of a word or a sentence.
        found = msgspec.convert(
            [items] if is_words else list(map(_as_list, items)),
            list[list[str | None] | None],
        )
        sentences = [[str(word or "") for word in words or ()] for words in found]
        return sentences if any(map(any, sentences)) else []
    return []


def _as_list(value: Any) -> Any:
    """A value as it is; of an array, as pandas has for lists, its items."""
    return value.tolist() if hasattr(value, "tolist") else value


def _is_prose(value: Any) -> bool:
    """Whether the value of a column is text, and more than numbers."""
    return any(map(str.isalpha, "".join(chain.from_iterable(row_text(value)))))
