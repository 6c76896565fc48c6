"""Tables: rows of comma- or tab-separated text, whose first line names the columns."""

import csv
from collections.abc import Iterator, Mapping, Sequence
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
        return unpacked_name(path).lower().endswith((".csv", ".tsv"))

    def rows(self, text: TextRange) -> Iterator[tuple[int, Mapping[str, str]]]:
        """See `RowReader`."""
        return read_table(text.path)[1]


def read_table(
    path: AnyPath,
) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """The names of the columns of a table, which its first line holds, and its rows,
    each with the number of the line where it begins. Where a row has another number of
    cells than the first line, an `InputError` is raised.

    Tabs divide the cells where the first line has one, or the name ends with `.tsv`.
    """
    first = next(filter(str.strip, read_lines(path)), "")
    has_tabs = "\t" in first or unpacked_name(path).lower().endswith(".tsv")
    # Spreadsheets of half of Europe write semicolons.
    separator = "\t" if has_tabs else max(",;", key=first.count)
    cells = _read_cells(path, separator)
    line, names = next(cells, (1, []))
    named = list(filter(None, names))
    if len(set(named)) < len(named):
        raise InputError(f"{path}, line {line} names two columns alike: rename one")
    return names, _named_rows(path, names, cells)


def _named_rows(
    path: AnyPath, names: Sequence[str], cells: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, dict[str, str]]]:
    """See `read_table`."""
    for line, row in cells:
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {line}: it has {len(row)} cells, the first line "
                f"{len(names)}"
            )
        yield line, dict(zip(names, row, strict=True))


def _read_cells(path: AnyPath, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row that is not blank, and the number of the line where
    it begins.

    Cells may stand within quotation marks, and hold line ends then.
    """
    # A cell may be a book.
    csv.field_size_limit(max(MAX_LINE_BYTES, csv.field_size_limit()))
    lines = (f"{line}\n" for line in read_lines(path))
    are_text = _marks_are_text(path, separator)
    quoting: Any = csv.QUOTE_NONE if are_text else csv.QUOTE_MINIMAL
    table = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    cells: list[str] | None = []
    while cells is not None:
        line = table.line_num + 1
        with reading(f"{path}, line {line}"):
            cells = next(table, None)
        if cells and are_text:
            cells = [unquoted(cell) for cell in cells]
        if cells and not (len(cells) == 1 and cells[0].isspace()):
            yield line, cells


def unquoted(cell: str) -> str:
    """The text of a cell in which a spreadsheet wrote a text with quotes: within
    quotes, its own ones doubled.
    """
    inner = cell[1:-1]
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    has_pairs = '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted and has_pairs else cell


def _marks_are_text(path: AnyPath, separator: str) -> bool:
    """Whether quotation marks enclose no cells (`unquoted` finds the others): tabs
    divide all lines into as many cells as the first, which has no marks around them.

    Args:
        path: of the table.
        separator: of its cells.
    """
    lines = filter(str.strip, read_lines(path))
    first = next(lines, "")
    is_plain = separator in first and separator == "\t" and '\t"' not in f"\t{first}"
    return is_plain and all(line.count("\t") == first.count("\t") for line in lines)
