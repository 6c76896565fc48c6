"""Tables: rows of comma- or tab-separated text, whose first line names the columns."""

import csv
from collections.abc import Iterator, Mapping
from typing import Any

from elmoc.errors import InputError, reading
from elmoc.files.compression import AnyPath, unpacked_name
from elmoc.files.text import MAX_LINE_BYTES, read_lines
from elmoc.text.reader import TextRange
from elmoc.text.rows import RowReader


class Tables(RowReader):
    """Files called `.csv` or `.tsv`, compressed or not."""

    unit = "line"

    def takes(self, path: AnyPath) -> bool:
        """See `TextReader`."""
        return unpacked_name(path).endswith((".csv", ".tsv"))

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, str]]]:
        """See `RowReader`."""
        is_tsv = unpacked_name(text.path).endswith(".tsv")
        return read_table(text.path, "\t" if is_tsv else ",")


def read_table(path: AnyPath, separator: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table, each with the number of the line where it begins.

    The first line names the columns. Cells may stand within quotation marks, and hold
    line ends then.

    Raises:
        InputError: a row with another number of cells than the first line.
    """
    # A cell may be a book.
    csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))
    lines = (f"{line}\n" for line in read_lines(path))
    quoting: Any = csv.QUOTE_MINIMAL
    if _marks_are_text(path, separator):
        quoting = csv.QUOTE_NONE
    table = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    names: list[str] = []
    # A blank line has no cells.
    cells: list[str] | None = []
    while cells is not None:
        line = table.line_num + 1
        with reading(f"{path}, line {line}"):
            cells = next(table, None)
            if cells and names and len(cells) != len(names):
                raise InputError(
                    f"it has {len(cells)} cells, the first line {len(names)}"
                )
        if cells and names:
            yield line, dict(zip(names, cells, strict=True))
        names = names or cells or []


def _marks_are_text(path: AnyPath, separator: str) -> bool:
    """Whether quotation marks enclose no cells: all lines have the cells of the first,
    but by the marks some of them would be one cell together.
    """
    counts = {line.count(separator) for line in read_lines(path) if line}
    is_even = len(counts) == 1 and counts != {0}
    return is_even and any(line.count('"') % 2 for line in read_lines(path))
