"""Documents: how text of any kind comes in, one document after the other.

Each kind of text has a `TextReader` in `READERS`. All else asks `read_documents` for
the documents, `whole_files` for what stands in files, and `reader_of` for how large a
text is, and where it can be divided among processes.

    columns     rows of Parquet files, by their first bytes or their name
    table       rows of comma- or tab-separated text, by its name (.csv, .tsv)
    documents   JSON lines, a tokenised document each, with `doc_key` and `sentences`
                (lists of words), as e2e-coref reads
    json        rows as JSON lines, by their name (.jsonl, .jsonlines) or content
    text        lines of text; a blank line and the end of a file end a document

Text, tables and JSON lines may be compressed (gzip, bzip2, xz, zstd). A row is a
document; `elmoc/text/rows.py` says what its text may be.
"""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from elmoc.errors import InputError, reading, say, warn
from elmoc.text import json_lines, parquet_files, tables
from elmoc.text.named_files import AnyPath, Copy, find_named_files
from elmoc.text.reader import (
    PlainText,
    TextDocument,
    TextRange,
    TextReader,
    lines_of,
)
from elmoc.text.rows import (
    SAMPLE_ROWS,
    TEXT,
    RowCount,
    choose_column,
    row_documents,
    row_text,
)

__all__ = [
    "BYTES_PER_TOKEN",
    "READERS",
    "AnySource",
    "RowCount",
    "TextDocument",
    "TextRange",
    "check_tokenised",
    "estimate_text_bytes",
    "lines_of",
    "read_documents",
    "reader_of",
    "rereadable",
    "whole_files",
]

# Of tokenised English, spaces included. Where a corpus is cut into shards depends on
# it.
BYTES_PER_TOKEN = 5
# The kinds of text by their names. The first one that takes a file reads it.
READERS: dict[str, TextReader] = {
    "columns": parquet_files.ParquetFiles(),
    "table": tables.Tables(),
    "documents": json_lines.JsonDocuments(),
    "json": json_lines.JsonRows(),
    "text": PlainText(),
}
# What errors call an iterable.
GIVEN = "the given texts"
AnySource = AnyPath | TextRange | Iterable[Any]


def reader_of(path: AnyPath) -> TextReader:
    """The reader of a file."""
    return next(reader for reader in READERS.values() if reader.takes(path))


def whole_files(files: Iterable[AnyPath], field: str | None = None) -> list[TextRange]:
    """Files of text from their beginnings to their ends, with the columns that hold the
    text of rows; a printed line says which were chosen.

    Args:
        files: of any kind.
        field: the column; by default `text`, or the only one that holds text.

    Raises:
        InputError: a file has no such column, or none has columns.
    """
    texts: list[TextRange] = []
    for file in files:
        # The copy of an iterable has a column of its own.
        wanted = TEXT if str(file) == GIVEN else field
        chosen = reader_of(file).choose_field(file, wanted)
        if chosen not in (None, wanted, *(text.field for text in texts)):
            say(f"{file}: the text of rows is in the column {chosen!r}")
        texts.append(TextRange(file, field=chosen))
    if field and not any(text.field for text in texts):
        raise InputError(
            f"--field {field} is for rows, and {texts[0].path} has none: leave it out"
        )
    return texts


def check_tokenised(texts: Iterable[TextRange], *, tell: bool = True) -> None:
    """Warn on standard error, with `tell`, of the first text that does not look
    tokenised: of a folder, one warning is enough.

    Raises:
        InputError: a text has columns, or is JSON that is not a line a row.
    """
    problems = {text.path: reader_of(text.path).problem(text) for text in texts}
    said = [f"{path} {problem}" for path, problem in problems.items() if problem]
    if tell and said:
        warn(said[0])


def read_documents(
    source: AnySource, *, field: str | None = None, count: RowCount | None = None
) -> Iterator[TextDocument]:
    """Yield the documents of a source, one after the other; text of any kind comes in
    here.

    Rows without text are left out; a printed line says how many.

    Args:
        source: a file, a folder, a glob, `NAME=PATH` of these, `-` for standard input,
            or a part of a file. Or an iterable, which is read once, of which each item
            is a document: a string (its text, in which blank lines end documents, too),
            a list of words (a tokenised sentence), a list of lists of words (tokenised
            sentences), a row (a dict, such as a `datasets.Dataset` yields), or a
            `TextDocument`.
        field: the column that holds the text of rows; by default `text`, or the only
            one that holds text, which a printed line names.
        count: counts the rows, in place of the printed line.

    Raises:
        InputError: a source that names no file, and text that cannot be read; it names
            file and line.
    """
    counted = count or RowCount()
    name: object = GIVEN
    if isinstance(source, TextRange):
        name = source.path
        yield from counted.with_text(reader_of(source.path).read(source))
    elif isinstance(source, str | os.PathLike):
        name = source
        with rereadable(source) as path:
            for text in whole_files(find_named_files([path]), field):
                yield from read_documents(text, count=counted)
    else:
        texts = enumerate(_texts_of(source, field), 1)
        documents = (row_documents(text, GIVEN, number) for number, text in texts)
        yield from counted.with_text(chain.from_iterable(documents))
    if count is None:
        counted.tell(name)


def _texts_of(items: Any, field: str | None) -> Iterator[Any]:
    """The items of an iterable; of rows, what the column of text has."""
    # Iterating over these would give numbers, or names of parts or columns.
    is_other = isinstance(items, Mapping | bytes) or hasattr(items, "columns")
    if is_other or not isinstance(items, Iterable):
        raise InputError(
            f"{type(items).__name__} is no source of text: give a path, or an iterable "
            "of strings, of lists of words, or of rows as dictionaries"
        )
    items = iter(items)
    beginning = list(islice(items, 1))
    first = beginning[0] if beginning else ""
    if isinstance(first, str | os.PathLike) and os.path.isfile(first):
        raise InputError(f"{first} is a file: give its path by itself")
    if isinstance(first, Mapping):
        beginning += islice(items, SAMPLE_ROWS - 1)
        chosen = choose_column(
            [item for item in beginning if isinstance(item, Mapping)], field, GIVEN
        )
        if field is None:
            say(f"{GIVEN}: the text of rows is in the column {chosen!r}")
        field = chosen
    for item in chain(beginning, items):
        yield item.get(field) if isinstance(item, Mapping) else item


@contextmanager
def rereadable(source: AnySource, *, field: str | None = None) -> Iterator[AnyPath]:
    """The path of a source, which can be read more than once, and by other processes:
    for `-` and for an iterable, of a copy, which is removed when the block ends.

    Args:
        source: see `read_documents`.
        field: of an iterable of rows, the column that holds the text.
    """
    if isinstance(source, str | os.PathLike) and str(source) != "-":
        yield source
        return
    is_path = isinstance(source, str | os.PathLike)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "copy"
        with open(path, "wb") as copy:
            if is_path:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                is_part = isinstance(source, TextRange)
                # Items without text, too: they count.
                items = read_documents(source) if is_part else _texts_of(source, field)
                for text in items:
                    with reading(GIVEN):
                        copy.write(msgspec.json.encode({TEXT: row_text(text)}) + b"\n")
        yield Copy(str(path), "standard input" if is_path else GIVEN)


def estimate_text_bytes(files: Iterable[AnyPath]) -> int:
    """About how many bytes of text files of any kind hold."""
    return sum(reader_of(file).text_bytes(file) for file in files)
