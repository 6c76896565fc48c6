"""Rows of task data, as data hubs and spreadsheets export them: JSON lines or a JSON
array, Parquet, and text separated by tabs, commas or semicolons whose first line names
the columns.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from elmoc.errors import InputError, note, reading, shortened
from elmoc.files.compression import open_binary
from elmoc.text.documents import TextRange, reader_of
from elmoc.text.json_lines import JsonRows
from elmoc.text.parquet_files import ParquetFiles
from elmoc.text.tables import read_table

# How JSON begins: an array of rows, and lines. In columns a label stands behind a word
# `[` or `{`.
_ARRAY = re.compile(rb"\[\s*\{")
_LINES = re.compile(rb'\{\s*"')

Rows = Iterator[tuple[int, Mapping[str, Any]]]


def read_cells(
    path: Path, columns: Sequence[Iterable[str]], wanted: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line on which each row begins (its number where there are no lines),
    and its cells by the names of their columns, in the order of `columns`.

    Args:
        path: the file, plain or compressed.
        columns: for each cell, the names that its column may have, in any case; the
            first that is there is read.
        wanted: what the task reads, as errors say it.

    Raises:
        InputError: a column is missing.
    """
    rows: Rows | None = object_rows(path)
    if rows is None:
        names, rows = read_table(path)
    else:
        line, first = next(rows, (1, {}))
        names = list(first)
        rows = chain([(line, first)], rows)
    known = {name.strip().lower(): name for name in names}
    chosen = []
    for options in columns:
        there = [known[option] for option in options if option in known]
        chosen += there[:1]
        if len(there) > 1:
            note(f"{path}: of the columns {', '.join(there)}, {there[0]} is read")
    if len(chosen) < len(columns):
        shown = shortened(", ".join(names)) or "nothing"
        raise InputError(f"{path}, line 1 has {shown}: {wanted}")
    for line, cells in rows:
        if not cells.keys() >= set(chosen):
            raise InputError(f"{path}, line {line}: {' and '.join(chosen)} are needed")
        yield line, {name: cells[name] for name in chosen}


def object_rows(path: Path) -> Rows | None:
    """The rows of JSON or Parquet with their numbers; None of any other file."""
    start = beginning(path)
    if _ARRAY.match(start):
        with reading(path), open_binary(path) as file:
            text = file.read().removeprefix(BOM_UTF8)
            objects = msgspec.json.decode(text, type=list[dict[str, Any]])
        return enumerate(objects, 1)
    reader = JsonRows() if _LINES.match(start) else reader_of(path)
    if isinstance(reader, (JsonRows, ParquetFiles)):
        return reader.rows(TextRange(path))
    return None


def beginning(path: Path) -> bytes:
    """The first bytes of the text of a file, without a byte order mark and white space
    before them.
    """
    with open_binary(path) as file:
        return file.read(1 << 16).lstrip(BOM_UTF8 + b" \r\n")
